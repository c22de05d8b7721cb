import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { refusalOf } from '../support/answers.ts'
import { assertDenied, assertInvalid, assertNotFound } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const repoType = 'registry.pinfold.dev/Repo'
const event = (verb: string) => `dev.pinfold.api.platform.registry.repo.${verb}.v1`

const { pinfold, operator, member, ...scene } = await startScene()
const group: string = scene.org.uid
const editor = await member(roleUids.editor)
const viewer = await member(roleUids.viewer)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

const create = (body: Json, client = operator, parent = group) => client.post(`/registry/v2/repos/${parent}`, body)
const pathOf = (repo: Json) => `/registry/v2/repos/${repo.uid}`

type EventRow = { type: string; subject: string; event_group: string; body_type: string; body: string; actor: string }
const eventsOf = (subject: string) =>
  pinfold.app.db.all<EventRow>(sql`SELECT * FROM events_outbox WHERE subject = ${subject} ORDER BY id`)

test('a patch changes only the fields in its mask, and sends one event', async () => {
  const repo = await pinfold.seed.repo(group, { name: 'web', description: 'old' })

  const body = { name: 'ignored', description: 'new' }
  const res = await operator.patch(`${pathOf(repo)}?updateMask=description`, body)

  assert.equal(res.status, 200)
  assert.deepEqual(res.body, { ...repo, description: 'new', updateTime: res.body.updateTime })
  assert.deepEqual(
    (await eventsOf(repo.uid)).map(({ type }) => type),
    [event('created'), event('updated')],
  )
})

test('a new repository has a uid below its group, its fields and both times', async () => {
  const folder = (await pinfold.seed.group(group)).uid
  for (const parent of [group, folder]) {
    const res = await create({ name: 'new', description: 'one' }, editor, parent)
    assert.equal(res.status, 200)
    const { uid, createTime } = res.body
    assert.match(uid, new RegExp(`^${parent}/[0-9a-f]{16}$`))
    assert.match(createTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const expected = { uid, name: 'new', description: 'one', createTime, updateTime: createTime }
    const empty = { catalogTier: 'CATALOG_TIER_UNSPECIFIED', bundles: [], aliases: [], activeTags: [] }
    assert.deepEqual({ ...empty, ...res.body }, { ...empty, ...expected })
    assert.deepEqual((await viewer.get(pathOf(res.body))).body, res.body)
  }
})

test('ignores output-only fields of a new repository', async () => {
  const created = await create({ name: 'own-uid', uid: 'x', createTime: '2001-01-01T00:00:00Z', updateTime: null })
  assert.equal(created.status, 200)
  assert.ok(created.body.uid.startsWith(`${group}/`))
  assert.ok(created.body.createTime > '2020')
})

test('get, update and delete return NOT_FOUND only to callers with access', async () => {
  const missing = { uid: `${group}/${'0'.repeat(16)}` }
  for (const path of [pathOf(missing), `${pathOf(missing)}/readme`]) {
    assertNotFound(await operator.get(path), repoType, missing.uid)
    assertNotFound(await operator.patch(path, {}), repoType, missing.uid)
    assertDenied(await stranger.get(path))
    assertDenied(await stranger.patch(path, {}))
  }
  assertNotFound(await operator.delete(pathOf(missing)), repoType, missing.uid)
  assertDenied(await stranger.delete(pathOf(missing)))

  const repo = await pinfold.seed.repo(group)
  assertDenied(await stranger.get(pathOf(repo)))
  assertDenied(await viewer.patch(pathOf(repo), { description: 'x' }))
  assertDenied(await viewer.delete(pathOf(repo)))
  assertDenied(await create({ name: 'x' }, viewer))
  assertDenied(await create({ name: 'x' }, stranger, `${group}/${'0'.repeat(16)}`))
  assert.equal(refusalOf(await pinfold.anonymous.get(pathOf(repo))).code, 16)
})

test('names a malformed uid, and refuses a repository as a parent', async () => {
  for (const uid of ['x', `${group}/`, `${group}/ABCDEF0123456789`, `${group}//0123456789abcdef`]) {
    assertInvalid(await operator.get(`/registry/v2/repos/${uid}`), 'uid')
    assertInvalid(await create({ name: 'x' }, operator, uid), 'parent')
  }
  const repo = await pinfold.seed.repo(group)
  assertNotFound(await create({ name: 'x' }, operator, repo.uid), 'iam.pinfold.dev/Group', repo.uid)
  const nowhere = 'f'.repeat(40)
  assertNotFound(await create({ name: 'x' }, operator, nowhere), 'iam.pinfold.dev/Group', nowhere)
})

test('a name is one path component of an image reference', async () => {
  const fine = ['a', '0', 'a.b', 'a_b', 'a__b', 'a-b', 'a---b', 'a.b_c__d-e', 'x'.repeat(255)]
  const wrong = [
    '',
    'A',
    'a/b',
    'a b',
    '_svc',
    '.a',
    'a.',
    '-a',
    'a-',
    'a..b',
    'a___b',
    'a._b',
    'é',
    'a\n',
    'x'.repeat(256),
  ]
  for (const name of fine) assert.equal((await create({ name })).status, 200, name)
  for (const name of wrong) assertInvalid(await create({ name }), 'name')
  assertInvalid(await create({}), 'name')
  assert.match((await create({ name: 'A' })).body.message, /^Invalid argument: name: name must match "\^/)
})

test('a name is unique in its group, also after concurrent requests', async () => {
  const folder = (await pinfold.seed.group(group)).uid
  const answers = await Promise.all(Array.from({ length: 8 }, () => create({ name: 'taken' }, editor, folder)))
  const refused = answers.filter(({ status }) => status !== 200)
  assert.equal(refused.length, 7)
  for (const answer of refused) {
    assert.deepEqual(refusalOf(answer), { http: 409, code: 6, reason: 'ALREADY_EXISTS', fields: [] })
  }
  assert.equal((await create({ name: 'taken' }, editor, group)).status, 200)
})

test('a repository cannot be renamed', async () => {
  const repo = await pinfold.seed.repo(group, { name: 'keeps' })
  assertInvalid(await operator.patch(pathOf(repo), { name: 'other' }), 'name')
  assertInvalid(await operator.patch(`${pathOf(repo)}?updateMask=name`, { name: 'other' }), 'name')
  assert.equal((await operator.patch(pathOf(repo), { name: 'keeps', description: 'fine' })).status, 200)
  assert.equal((await operator.get(pathOf(repo))).body.name, 'keeps')
})

test('a description is one line of at most 512 characters', async () => {
  const repo = await pinfold.seed.repo(group)
  for (const description of ['', 'x'.repeat(512), '😀'.repeat(512), 'words, and "marks"']) {
    const res = await editor.patch(pathOf(repo), { description })
    assert.equal(res.status, 200)
    assert.equal(res.body.description, description)
  }
  for (const description of ['x'.repeat(513), '😀'.repeat(513), 'two\nlines', 'a\ttab']) {
    assertInvalid(await editor.patch(pathOf(repo), { description }), 'description')
    assertInvalid(await create({ name: 'described', description }), 'description')
  }
})

test('only catalog administrators can set tier, bundles, aliases and active tags', async () => {
  const admin = { catalogTier: 'CATALOG_TIER_BASE', bundles: ['base'], aliases: ['nginx:latest'], activeTags: ['1'] }
  const repo = await pinfold.seed.repo(group, { name: 'catalogued' })
  for (const [field, value] of Object.entries(admin)) {
    assertDenied(await create({ name: 'refused', [field]: value }, editor))
    assertDenied(await editor.patch(pathOf(repo), { [field]: value }))
    const set = await operator.patch(pathOf(repo), { [field]: value })
    assert.deepEqual(set.body[field], value)
    assertDenied(await editor.patch(pathOf(repo), { [field]: null }))
  }
  const made = await create({ name: 'by-admin', ...admin })
  assert.partialDeepStrictEqual(made.body, admin)

  const described = await editor.patch(pathOf(repo), { ...admin, description: 'restated' })
  assert.partialDeepStrictEqual(described.body, { ...admin, description: 'restated' })

  const role = await pinfold.seed.role(group, ['repo.update', 'internal', 'repo.internal.admin'])
  const administrator = await pinfold.as((await pinfold.seed.member(group, role.uid)).uid)
  assert.deepEqual((await administrator.patch(pathOf(repo), { bundles: [] })).body.bundles ?? [], [])
})

test('validates bundles, aliases, active tags and the tier', async () => {
  const repo = await pinfold.seed.repo(group)
  const patch = (body: Json) => operator.patch(pathOf(repo), body)
  const bundles = ['application', 'base', 'byol', 'ai', 'ai-gpu', 'featured', 'fips', 'commercial', 'emeritoss']
  const aliases = ['nginx:1', 'docker.io/library/nginx:latest', 'a_B.c-d/E:X_y.1']
  const activeTags = ['latest', '_x', '1.2-r0', 'x'.repeat(128)]
  assert.partialDeepStrictEqual((await patch({ bundles, aliases, activeTags })).body, { bundles, aliases, activeTags })
  const numbered = await patch({ catalogTier: 6 })
  assert.equal(numbered.body.catalogTier, 'CATALOG_TIER_COMMERCIAL')

  for (const bundle of ['', 'Base', 'other', 'base '])
    assertInvalid(await patch({ bundles: ['ai', bundle] }), 'bundles')
  for (const alias of ['', 'nginx', 'nginx:', ':latest', 'nginx/:latest', 'a:b:c', 'a b:c', 'nginx@sha256:x']) {
    assertInvalid(await patch({ aliases: [alias] }), 'aliases')
  }
  for (const tag of ['', '.x', '-x', 'a b', 'x'.repeat(129)])
    assertInvalid(await patch({ activeTags: [tag] }), 'active_tags')
  for (const catalogTier of [7, 'CATALOG_TIER_OTHER', 'BASE'])
    assertInvalid(await patch({ catalogTier }), 'catalog_tier')
  assertInvalid(await patch({ bundles: [''], description: '\t' }), 'description', 'bundles')
  assertInvalid(await patch({ activeTags: Array(1001).fill('x') }), 'active_tags')
})

test('refuses an invalid overlay, and fails for a valid one, because images are not assembled here', async () => {
  const repo = await pinfold.seed.repo(group)
  const patch = (customOverlay: Json) => operator.patch(pathOf(repo), { customOverlay })
  const pem = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ type: 'spki', format: 'pem' })
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyring = (name: string, content: unknown) => ({ contents: { runtimeKeyring: [{ name, content }] } })

  assertInvalid(await patch({ environment: { PINFOLD_TOKEN: 'x' } }), 'custom_overlay.environment')
  assertInvalid(await patch({ annotations: { 'dev.pinfold.x': 'y' } }), 'custom_overlay.annotations')
  assertInvalid(await patch({ annotations: { 'org.opencontainers.image.title': 'y' } }), 'custom_overlay.annotations')
  const entry = 'custom_overlay.contents.runtime_keyring[0]'
  assertInvalid(await patch(keyring('.hidden', pem)), `${entry}.name`)
  assertInvalid(await patch(keyring('a.pub', 'not a key')), `${entry}.content`)
  assertInvalid(await patch(keyring('a.pub', publicKey.export({ type: 'spki', format: 'pem' }))), `${entry}.content`)

  const faultless = { environment: { PATH: '/bin' }, annotations: { 'com.example': 'x' }, ...keyring('a.pub', pem) }
  for (const answer of [
    await patch(faultless),
    await patch({}),
    await create({ name: 'x', customOverlay: faultless }),
  ]) {
    assert.deepEqual(refusalOf(answer), { http: 400, code: 9, reason: 'FAILED_PRECONDITION', fields: [] })
    assert.equal(answer.body.details[1].violations[0].type, 'CUSTOM_ASSEMBLY_DISABLED')
  }
  const masked = await operator.patch(`${pathOf(repo)}?updateMask=description`, { customOverlay: faultless })
  assert.equal(masked.status, 200)
})

test('a readme is empty at first, and catalog administrators can replace it', async () => {
  const repo = await pinfold.seed.repo(group)
  const path = `${pathOf(repo)}/readme`
  assert.deepEqual((await viewer.get(path)).body, { uid: repo.uid, content: '' })

  const content = '# Hello\n\n<img src="https://example.com/x.png" width="10">\n'
  assert.deepEqual((await operator.patch(path, { content })).body, { uid: repo.uid, content })
  assert.deepEqual((await viewer.get(path)).body, { uid: repo.uid, content })
  assertDenied(await editor.patch(path, { content }))
  assertInvalid(await operator.patch(path, { content: '<script>alert(1)</script>' }), 'content')
  assertInvalid(await operator.patch(path, { content: 'x'.repeat(512 * 1024 + 1) }), 'content')

  assert.equal((await operator.patch(path, {})).body.content, content)
  assert.equal((await operator.patch(`${path}?updateMask=content`, {})).body.content, '')
  assert.equal((await operator.patch(path, { content: 'again' })).body.content, 'again')
  assert.equal((await operator.patch(`${path}?updateMask=*`, {})).body.content, '')
})

test('the readme is not part of a repository or a list', async () => {
  const repo = await pinfold.seed.repo(group)
  await operator.patch(`${pathOf(repo)}/readme`, { content: 'hidden words' })
  assert.doesNotMatch((await operator.get(pathOf(repo))).text, /hidden words/)
  assert.doesNotMatch((await operator.get(`/registry/v2/repos?name=${repo.name}`)).text, /hidden words/)
})

test('deleting a repository returns an empty answer, deletes the readme and frees the name', async () => {
  const repo = await pinfold.seed.repo(group, { name: 'goes' })
  await operator.patch(`${pathOf(repo)}/readme`, { content: 'old' })
  const res = await editor.delete(pathOf(repo))
  assert.deepEqual([res.status, res.text], [200, ''])
  assertNotFound(await operator.get(pathOf(repo)), repoType, repo.uid)
  assertNotFound(await editor.delete(pathOf(repo)), repoType, repo.uid)
  const readmes = await pinfold.app.db.all(sql`SELECT 1 AS one FROM repo_readmes WHERE repo_uid = ${repo.uid}`)
  assert.deepEqual(readmes, [])
  assert.equal((await create({ name: 'goes' }, editor)).status, 200)
})

test('each change writes one event with the group of the repository and the returned resource', async () => {
  const folder = (await pinfold.seed.group(group)).uid
  const { body: repo } = await create({ name: 'eventful', activeTags: ['1'] }, operator, folder)
  const { body: updated } = await editor.patch(pathOf(repo), { description: 'new' })
  await operator.patch(`${pathOf(repo)}/readme`, { content: 'text' })
  await editor.patch(pathOf(repo), {})
  await editor.delete(pathOf(repo))

  const rows = await eventsOf(repo.uid)
  assert.deepEqual(
    rows.map(({ type }) => type),
    [event('created'), event('updated'), event('updated'), event('updated'), event('deleted')],
  )
  assert.deepEqual(new Set(rows.map((row) => row.event_group)), new Set([folder]))
  assert.deepEqual(
    rows.map((row) => row.body_type.split('.').at(-1)),
    ['Repo', 'Repo', 'RepoReadme', 'Repo', 'DeleteRepoRequest'],
  )
  const bodies = rows.map(({ body }) => JSON.parse(body))
  const { createTime: create_time, activeTags: active_tags, name, uid } = repo
  const shown = { uid, name, active_tags, create_time }
  assert.partialDeepStrictEqual(bodies[0], { ...shown, update_time: repo.updateTime })
  assert.partialDeepStrictEqual(bodies[1], { ...shown, description: 'new', update_time: updated.updateTime })
  assert.deepEqual(bodies[2], { uid: repo.uid, content: 'text' })
  assert.deepEqual(bodies[4], { uid: repo.uid })
})

test('a failed request writes no event', async () => {
  const repo = await pinfold.seed.repo(group)
  const before = (await pinfold.events()).length
  await create({ name: repo.name })
  await create({ name: 'A' })
  await operator.patch(pathOf(repo), { description: '\n' })
  await operator.patch(`${pathOf(repo)}/readme`, { content: '<script></script>' })
  await viewer.delete(pathOf(repo))
  assert.equal((await pinfold.events()).length, before)
})

test('an organization has no more repositories than its limit, in all its folders together', async () => {
  const root = (await pinfold.seed.group()).uid
  const folder = (await pinfold.seed.group(root)).uid
  const limits = JSON.stringify({ repositories: 3 })
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE groups SET resource_limits = ${limits} WHERE uid = ${root}`))

  const parents = [root, folder, root, folder, root, folder]
  const answers = await Promise.all(parents.map((parent, i) => create({ name: `limited-${i}` }, operator, parent)))
  const [made, refused] = [answers.filter((a) => a.status === 200), answers.filter((a) => a.status !== 200)]
  assert.equal(made.length, 3)
  const expected = { http: 429, code: 8, reason: 'RESOURCE_LIMIT_EXCEEDED', fields: [] }
  for (const answer of refused) assert.deepEqual(refusalOf(answer), expected)

  await operator.delete(pathOf(made[0]!.body))
  assert.equal((await create({ name: 'room-again' }, operator, folder)).status, 200)
  assert.equal(refusalOf(await create({ name: 'one-more' }, operator, root)).code, 8)
})
