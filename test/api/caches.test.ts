// Caches of rights, paths and manifests: a change clears the caches that become outdated, and no others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { App, Work } from '#app.ts'
import type { Sql } from '#db/sql.ts'
import { pullDigest } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import type { CacheName } from '#lib/resource.ts'
import { ok } from '../support/expect.ts'
import { roleUids } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'

test('each change clears the caches that it makes outdated before the server answers', async () => {
  await using registry = await startRegistry({ allowOrganizationCreation: true })
  const { app, seed, operator, org, pusher, registryOperator } = registry
  const names: readonly CacheName[] = ['grants', 'manifests', 'paths']
  let cleared = new Set<string>()
  for (const name of names) {
    const { clear } = app[name]
    app[name].clear = () => {
      cleared.add(name)
      clear()
    }
  }
  async function clears(what: string, expected: string, change: () => Promise<unknown>) {
    cleared = new Set()
    const result = await change()
    assert.equal([...cleared].sort().join(' '), expected, what)
    return result as any
  }

  const folder = await clears('a folder is made', '', () => seed.group(org.uid, { name: 'team' }))
  const stays = await clears('an identity is made', '', () => seed.identity(org.uid))
  await clears('an identity is changed', '', () =>
    operator.patch(`/iam/v2/identities/${stays.uid}`, { description: 'x' }),
  )
  const role = await clears('a role is made', '', () => seed.role(org.uid, ['repo.list']))
  const binding = await clears('a role is bound', 'grants', () => seed.binding(folder.uid, stays.uid, role.uid))
  await clears('a role is changed', 'grants', () =>
    operator.patch(`/iam/v2/roles/${role.uid}`, { capabilities: ['groups.list'] }),
  )
  const rebind = { roleUid: roleUids.viewer }
  await clears('a binding is changed', 'grants', () => operator.patch(`/iam/v2/roleBindings/${binding.uid}`, rebind))
  await clears('a binding is deleted', 'grants', () => operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  await clears('bindings are made together', 'grants', async () => {
    const requests = [{ roleBinding: { identityUid: stays.uid, roleUid: role.uid } }]
    ok(await operator.post('/iam/v2/roleBindings:batchCreate', { parent: folder.uid, requests }))
  })
  await clears('an identity is deleted', 'grants', () => operator.delete(`/iam/v2/identities/${stays.uid}`))
  await clears('a role is deleted', 'grants', () => operator.delete(`/iam/v2/roles/${role.uid}`))

  const repo = await clears('a repo is made', '', () => seed.repo(folder.uid, { name: 'app' }))
  const image = await clears('an image is pushed', '', () => pusher.pushImage('acme/team/app', 'one'))
  await clears('a tag is moved', '', () => pusher.pushImage('acme/team/app', 'one'))
  await clears('a repo is changed', '', () => operator.patch(`/registry/v2/repos/${repo.uid}`, { description: 'x' }))
  await clears('a tag is deleted', '', () => registryOperator.ok(202, 'DELETE', 'acme/team/app/manifests/one'))
  const byDigest = `acme/team/app/manifests/${image.digest}`
  await registryOperator.ok(200, 'GET', byDigest)
  await clears('a manifest is deleted', 'manifests', () => registryOperator.ok(202, 'DELETE', byDigest))
  await registryOperator.ok(404, 'GET', byDigest)

  await registryOperator.ok(200, 'GET', 'acme/team/app/tags/list')
  await clears('a group is renamed', 'paths', () => operator.patch(`/iam/v2/groups/${folder.uid}`, { name: 'crew' }))
  await registryOperator.ok(404, 'GET', 'acme/team/app/tags/list')
  await registryOperator.ok(200, 'GET', 'acme/crew/app/tags/list')
  await clears('a repo is deleted', 'manifests paths', () => operator.delete(`/registry/v2/repos/${repo.uid}`))
  await registryOperator.ok(404, 'GET', 'acme/crew/app/tags/list')
  await clears('a group is deleted', 'grants paths', () => operator.delete(`/iam/v2/groups/${folder.uid}`))

  const person = await registry.as((await registry.seed.person()).uid)
  const own = await clears('an organization gets its owner', 'grants', () =>
    person.post('/iam/v2/groups/', { name: 'mine' }),
  )
  ok(await person.get(`/iam/v2/groups/${own.body.uid}`))
})

test('a refused request clears no cache', async () => {
  await using registry = await startRegistry()
  const { app, seed, operator, org } = registry
  let cleared = 0
  for (const name of ['grants', 'manifests', 'paths'] as const) app[name].clear = () => void cleared++
  await seed.repo(org.uid)
  assert.equal((await operator.delete(`/iam/v2/groups/${org.uid}`)).status, 400)
  assert.equal((await operator.delete(`/iam/v2/roles/${org.uid}/${'0'.repeat(16)}`)).status, 404)
  assert.equal(cleared, 0)
})

/** Delays the result of the last query of the read until `meanwhile` has ended. */
async function racing(
  app: App,
  { read, queries }: { read: () => Promise<unknown>; queries: number },
  meanwhile: () => Promise<unknown>,
): Promise<void> {
  const { get } = app.db
  const [found, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let left = queries
  app.db.get = async <T>(query: Sql) => {
    if (--left > 0) return get<T>(query)
    app.db.get = get
    const row = await get<T>(query)
    found.resolve()
    await go.promise
    return row
  }
  const reading = read()
  await found.promise
  await meanwhile()
  go.resolve()
  await reading
}

test('a read during a deletion or a rename puts no outdated value into the cache', async () => {
  await using registry = await startRegistry()
  const { app, seed, operator, org, pusher, registryOperator } = registry
  const folder = await seed.group(org.uid, { name: 'team' })
  const { uid, id, path } = await (async () => {
    await pusher.pushImage('acme/team/app', 'one')
    return (await app.paths.find('acme/team/app')).repo!
  })()
  const image = await pusher.pushImage(path, 'two')
  app.manifests.clear()
  await racing(
    app,
    { read: () => pullDigest({ app } as Pick<Work, 'app'> as Work, { id } as RepoRef, image.digest), queries: 1 },
    () => registryOperator.ok(202, 'DELETE', `${path}/manifests/${image.digest}`),
  )
  assert.equal(app.manifests.get(id, image.digest, true), undefined)
  await registryOperator.ok(404, 'GET', `${path}/manifests/${image.digest}`)

  for (const [change, name] of [
    [() => operator.patch(`/iam/v2/groups/${folder.uid}`, { name: 'crew' }), 'acme/team/app'],
    [() => operator.delete(`/registry/v2/repos/${uid}`), 'acme/crew/app'],
  ] as const) {
    app.paths.clear()
    // Three queries: the organization, the folder and the repo.
    await racing(app, { read: () => app.paths.find(name), queries: 3 }, change)
    assert.equal((await app.paths.find(name)).repo, undefined, name)
    await registryOperator.ok(404, 'GET', `${name}/tags/list`)
  }
})
