// Paths at the registry: their maximum length, and their state after a rename.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ok } from '../support/expect.ts'
import { codeOf, startRegistry, types } from '../support/registry.ts'

test('accepts a path of 255 characters for pushes and pulls, and refuses a longer one', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, operator, org } = registry
  const fits = `acme/${'a'.repeat(250)}`
  assert.equal(fits.length, 255)
  const { digest } = await pusher.pushImage(fits, 'v1')
  assert.equal((await puller.ok(200, 'GET', `${fits}/manifests/v1`)).headers['docker-content-digest'], digest)
  assert.deepEqual((await puller.ok(200, 'GET', `${fits}/tags/list`)).body.tags, ['v1'])
  const nested = `acme/team/${'b'.repeat(245)}`
  await pusher.pushImage(nested, 'v1')
  const headers = { 'content-type': types.image }
  for (const long of [`${fits}a`, `${nested}b`]) {
    for (const answer of [
      await pusher.call('PUT', `${long}/manifests/v1`, { body: '{}', headers }),
      await pusher.call('POST', `${long}/blobs/uploads/`),
      await puller.call('GET', `${long}/manifests/v1`),
    ]) {
      assert.deepEqual([answer.status, codeOf(answer)], [400, 'NAME_INVALID'])
    }
  }
  const { repos } = ok(await operator.get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`))
  assert.equal(repos.length, 2)
})

test('after a rename of an organization or a folder, only the new path works, at once', async () => {
  await using registry = await startRegistry()
  const { pusher, registryOperator: client, operator, org, seed } = registry
  const team = await seed.group(org.uid, { name: 'team' })
  const image = await pusher.pushImage('acme/team/app', 'v1')
  const blob = await pusher.pushBlob('acme/team/app', 'content')
  const below = (path: string) =>
    ['manifests/v1', `manifests/${image.digest}`, `blobs/${blob.digest}`, 'tags/list'].map((what) => `${path}/${what}`)
  const answers = async (path: string) => {
    const statuses = new Set<number>()
    for (const what of below(path)) statuses.add((await client.call('GET', what)).status)
    return [...statuses]
  }
  let path = 'acme/team/app'
  for (const [group, name, next] of [
    [team, 'crew', 'acme/crew/app'],
    [org, 'umbrella', 'umbrella/crew/app'],
    [team, 'team', 'umbrella/team/app'],
  ] as const) {
    assert.deepEqual(await answers(path), [200])
    ok(await operator.patch(`/iam/v2/groups/${group.uid}`, { name }))
    assert.deepEqual(await answers(path), [404], path)
    assert.deepEqual(await answers(next), [200], next)
    path = next
  }
  // By its uids, the repository keeps its path.
  assert.deepEqual(await answers(`${org.uid}/${team.uid.split('/')[1]}/app`), [200])
})
