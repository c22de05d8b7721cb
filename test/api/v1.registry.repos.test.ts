// Version 1 of repositories: the same resources, events and rights as version 2, with other names and formats.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, operator, member, holding, org, ...scene } = await startScene()
const editor = await member(roleUids.editor)
const stranger = await scene.stranger()
after(() => pinfold[Symbol.asyncDispose]())

const create = (body: Json, client: Client = operator, parent: string = org.uid, query = '') =>
  client.post(`/registry/v1/repos/${parent}${query}`, body)
const put = (id: string, body: Json, client: Client = operator) => client.call('PUT', `/registry/v1/repos/${id}`, body)
const list = async (query: string, client: Client = operator) => {
  const { status, body } = await client.get(`/registry/v1/repos?${query}`)
  assert.equal(status, 200)
  return body.items as Json[]
}

type EventRow = { type: string; source: string; body_type: string; body: string }
const eventsOf = (subject: string) =>
  pinfold.app.db.all<EventRow>(sql`SELECT * FROM events_outbox WHERE subject = ${subject} ORDER BY id`)

test('a repository created in version 1 is the same in version 2', async () => {
  const made = await create({ name: 'both', description: 'one', catalogTier: 'FIPS', readme: '# Both' })
  assert.equal(made.status, 200)
  const { id, createTime } = made.body
  assert.deepEqual(made.body, {
    id,
    name: 'both',
    description: 'one',
    catalogTier: 'FIPS',
    readme: '# Both',
    bundles: [],
    aliases: [],
    activeTags: [],
    sync_config: null,
    customOverlay: null,
    createTime,
  })
  const { body: newer } = await operator.get(`/registry/v2/repos/${id}`)
  assert.equal(newer.catalogTier, 'CATALOG_TIER_FIPS')
  assert.equal((await operator.get(`/registry/v2/repos/${id}/readme`)).body.content, '# Both')
  assert.deepEqual(await list(`id=${id}`), [made.body])
})

test('version 1 returns each field, set or not, and version 2 only set fields', async () => {
  const { body } = await create({ name: 'bare' })
  assert.deepEqual([body.catalogTier, body.sync_config, body.readme, body.bundles], ['UNKNOWN', null, '', []])
  const { body: newer } = await operator.get(`/registry/v2/repos/${body.id}`)
  assert.deepEqual([newer.catalogTier, newer.syncConfig, newer.bundles], [undefined, undefined, []])
  const returned = await put(body.id, body)
  assert.deepEqual(returned.body, body, 'what was answered can be sent back')
  assert.deepEqual((await operator.get(`/registry/v1/repocountbysource/${body.id}`)).body, { count: '0' })
  assert.equal((await operator.delete(`/registry/v1/repos/${body.id}`)).text, '')
})

test('events have the body, source and body type of the called version', async () => {
  const { id } = (await create({ name: 'told' })).body
  await put(id, { name: 'told', description: 'two' })
  await operator.patch(`/registry/v2/repos/${id}`, { description: 'three' })
  assert.equal((await operator.delete(`/registry/v1/repos/${id}`)).status, 200)

  const [created, replaced, patched, deleted] = await eventsOf(id)
  const type = (verb: string) => `dev.pinfold.api.platform.registry.repo.${verb}.v1`
  for (const [row, verb, version] of [
    [created, 'created', ''],
    [replaced, 'updated', ''],
    [patched, 'updated', '.v2'],
  ] as const) {
    assert.equal(row!.type, type(verb))
    assert.equal(row!.body_type, `pinfold.platform.registry${version}.Repo`)
    assert.equal(row!.source, version === '' ? '/registry/v1/repos' : '/registry/v2/repos')
    assert.equal(JSON.parse(row!.body)[version === '' ? 'id' : 'uid'], id)
  }
  assert.equal(deleted!.type, type('deleted'))
  assert.equal(deleted!.body_type, 'pinfold.platform.registry.DeleteRepoRequest')
  assert.deepEqual(JSON.parse(deleted!.body), { id })
})

test('creating a repository with an existing name replaces it, unless the request prevents this', async () => {
  const { id } = (await create({ name: 'again', description: 'first', readme: 'Text' })).body
  const second = await create({ name: 'again', description: 'second' })
  assert.deepEqual([second.status, second.body.id, second.body.readme], [200, id, ''])
  const prevented = await create({ name: 'again' }, operator, org.uid, '?prevent_existing=true')
  assert.deepEqual([prevented.status, prevented.body.code], [409, 6])

  const maker = await holding('CAP_REPO_CREATE')
  assertDenied(await create({ name: 'again', description: 'third' }, maker))
  assert.equal((await list(`id=${id}`))[0]!.description, 'second')
})

test('a repository can be replaced although the quota allows no new one', async () => {
  const full = await pinfold.seed.group()
  const made = (await create({ name: 'only', readme: 'Text', catalogTier: 'BASE' }, operator, full.uid)).body
  const limits = JSON.stringify({ repositories: 1 })
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE groups SET resource_limits = ${limits} WHERE uid = ${full.uid}`))
  const owner = await member(roleUids.owner, full.uid)
  const again = await create({ ...made, description: 'new' }, owner, full.uid)
  assert.deepEqual(again.body, { ...made, description: 'new' })
  assert.equal((await create({ name: 'second' }, owner, full.uid)).body.code, 8)
})

test('a PUT clears omitted fields, except those that only catalog administrators can set', async () => {
  const full = { name: 'full', description: 'text', catalogTier: 'BASE', bundles: ['base'], readme: 'Read me' }
  const { id } = (await create(full)).body
  const byEditor = await put(id, {}, editor)
  assert.equal(byEditor.status, 200, byEditor.text)
  assert.deepEqual(
    { ...byEditor.body, createTime: '' },
    {
      ...full,
      id,
      description: '',
      aliases: [],
      activeTags: [],
      createTime: '',
      sync_config: null,
      customOverlay: null,
    },
  )
  assertDenied(await put(id, { catalogTier: 'AI' }, editor))
  assertDenied(await put(id, { readme: 'mine' }, editor))
  assertInvalid(await put(id, { name: 'other' }), 'name')

  const { body } = await put(id, {})
  assert.deepEqual([body.catalogTier, body.bundles, body.readme], ['UNKNOWN', [], ''])
  assert.equal((await put(`${org.uid}/0123456789abcdef`, {})).status, 404)
})

test('a list is complete; a missing or invisible repository returns an empty list', async () => {
  const folder = (await pinfold.seed.group(org.uid)).uid
  const names = Array.from({ length: 60 }, (_, i) => `r${String(i).padStart(2, '0')}`)
  for (const name of names) await pinfold.seed.repo(folder, { name })
  const all = await list(`uidp.childrenOf=${folder}`)
  assert.deepEqual(all.map(({ name }) => name).sort(), names)
  assert.deepEqual(
    all.map(({ id }) => id),
    all.map(({ id }) => id).sort(),
  )
  assert.deepEqual(
    (await list(`uidp.descendantsOf=${folder}&name=r07`)).map(({ name }) => name),
    ['r07'],
  )

  const { id } = all[0]!
  for (const query of [`id=${folder}/0123456789abcdef`, 'id=nonsense', `uidp.childrenOf=${folder}/0123456789abcdef`]) {
    assert.deepEqual(await list(query), [], query)
  }
  for (const query of [`id=${id}`, `uidp.childrenOf=${folder}`, 'name=r07']) {
    assert.deepEqual(await list(query, stranger), [], query)
  }
  assertInvalid(await operator.get('/registry/v1/repos?uidp.childrenOf=nonsense'), 'uidp.children_of')
  assert.deepEqual((await operator.get(`/registry/v1/repocountbysource/${id}`)).body, { count: '0' })
})

test('names invalid fields, and denies callers without permission', async () => {
  assertInvalid(await create({ name: 'No Such Name' }), 'name')
  assertInvalid(await create({ name: 'tier', catalogTier: 3 }), 'catalog_tier')
  assertInvalid(await create({ name: 'sync', sync_config: { source: org.uid } }), 'sync_config.source')
  assertInvalid(await create({ name: 'over', customOverlay: {} }), 'custom_overlay')
  assertInvalid(await create({ name: 'html', readme: '<script>alert(1)</script>' }), 'readme')
  assertDenied(await create({ name: 'any' }, stranger))
})
