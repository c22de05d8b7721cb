// Updates with and without a mask, over REST and over gRPC.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { CatalogTier, ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { assertInvalid } from '../support/expect.ts'
import { type GrpcClient, GrpcError, grpcClientOf } from '../support/grpc.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

const old = {
  description: 'old',
  catalogTier: CatalogTier.BASE,
  bundles: ['base'],
  aliases: ['nginx:latest'],
  activeTags: ['1', '2'],
}
type Changeable = typeof old
const empty: Changeable = { description: '', catalogTier: 0, bundles: [], aliases: [], activeTags: [] } as never

let pinfold: Pinfold
let group: string
let grpc: GrpcClient<typeof ReposService>
let repo: Json

before(async () => {
  pinfold = await startPinfold()
  group = (await pinfold.seed.group()).uid
  grpc = grpcClientOf(pinfold, ReposService, pinfold.operator.token)
})
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

/** Creates a repository for each case, without empty fields. */
const fresh = async () => {
  repo = await pinfold.seed.repo(group, old)
  return repo
}
const patch = (query: string, body: unknown) => pinfold.operator.patch(`/registry/v2/repos/${repo.uid}${query}`, body)

/** Current values of the changeable fields of the repository. */
async function stored(): Promise<Changeable> {
  const { name, description, catalogTier, bundles, aliases, activeTags } = await grpc.getRepo({ uid: repo.uid })
  assert.equal(name, repo.name)
  return { description, catalogTier: catalogTier as never, bundles, aliases, activeTags }
}

async function overRest(query: string, body: unknown, expected: Changeable): Promise<void> {
  await fresh()
  const res = await patch(query, body)
  assert.equal(res.status, 200, res.text)
  assert.deepEqual(await stored(), expected, `${query} ${JSON.stringify(body)}`)
}

async function overGrpc(paths: string[], values: Partial<Changeable>, expected: Changeable): Promise<void> {
  await fresh()
  await grpc.updateRepo({ repo: { uid: repo.uid, ...values }, ...(paths.length > 0 && { updateMask: { paths } }) })
  assert.deepEqual(await stored(), expected, `${paths} ${JSON.stringify(values)}`)
}

async function refusedOverGrpc(call: Promise<unknown>, code: number, ...fields: string[]): Promise<void> {
  const error = await call.then(
    () => assert.fail('was accepted'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof GrpcError, String(error))
  assert.deepEqual([error.code, error.fields], [code, fields], error.message)
}

test('REST: a mask selects the changed fields, in either spelling, and other fields are ignored', async () => {
  const body = { name: 'ignored', description: 'new', bundles: ['ai'], activeTags: ['3'] }
  await overRest('?updateMask=description', body, { ...old, description: 'new' })
  await overRest('?update_mask=description,bundles', body, { ...old, description: 'new', bundles: ['ai'] })
  await overRest('?updateMask=activeTags', body, { ...old, activeTags: ['3'] })
  await overRest('?updateMask=active_tags%2Cdescription', body, { ...old, activeTags: ['3'], description: 'new' })
})

test('REST: a mask path without a field in the body clears the field', async () => {
  await overRest('?updateMask=description,catalog_tier', {}, { ...old, description: '', catalogTier: 0 as never })
  await overRest('?updateMask=aliases', { description: 'x' }, { ...old, aliases: [] })
  await overRest('?updateMask=bundles', undefined, { ...old, bundles: [] })
})

test('REST: without a mask, each field in the body is changed, also empty ones', async () => {
  await overRest('', { description: 'new' }, { ...old, description: 'new' })
  await overRest('', { description: '', bundles: [] }, { ...old, description: '', bundles: [] })
  await overRest('', { active_tags: null, catalogTier: 0 }, { ...old, activeTags: [], catalogTier: 0 as never })
  await overRest('?updateMask=', { description: 'new' }, { ...old, description: 'new' })
})

test('REST: a star replaces all fields except fixed ones', async () => {
  await overRest('?updateMask=*', { description: 'new' }, { ...empty, description: 'new' })
  await overRest('?updateMask=*', {}, empty)
  await overRest('?updateMask=*', { name: 'another', bundles: ['ai'] }, { ...empty, bundles: ['ai'] })
  const { uid, createTime } = repo
  const after = (await pinfold.operator.get(`/registry/v2/repos/${uid}`)).body
  assert.deepEqual([after.uid, after.createTime], [uid, createTime])
})

test('REST: output-only paths have no effect, and unknown paths are refused', async () => {
  const times = { uid: '', createTime: '2001-01-01T00:00:00Z', updateTime: '2001-01-01T00:00:00Z' }
  await overRest(
    '?updateMask=uid,create_time,updateTime,description',
    { ...times, description: 'x' },
    { ...old, description: 'x' },
  )
  await overRest('?updateMask=create_time', times, old)
  await overRest('', times, old)
  assert.equal((await patch('', times)).body.createTime, repo.createTime)
  for (const mask of ['other', 'description,other', 'description.x', '*,description', 'sync_config.other', 'Name']) {
    assertInvalid(await patch(`?updateMask=${mask}`, { description: 'x' }), 'update_mask')
  }
  assertInvalid(await patch('', { other: 1 }), 'other')
  assert.deepEqual(await stored(), old)
})

test('REST: the uid in the path identifies the repository, and another uid in the body is refused', async () => {
  await fresh()
  const other = await pinfold.seed.repo(group)
  assertInvalid(await patch('', { uid: other.uid, description: 'x' }), 'uid')
  assert.equal((await patch('', { uid: repo.uid, description: 'same' })).body.description, 'same')
})

test('an empty body without a mask changes nothing and sends one event; a body must be JSON', async () => {
  for (const body of [{}, undefined]) await overRest('', body, old)
  const rows = await pinfold.app.db.all(sql`SELECT id FROM events_outbox WHERE subject = ${repo.uid}`)
  assert.equal(rows.length, 2)
  for (const body of ['x', '[]', '"a"', '{']) assertInvalid(await patch('', body), 'body')
})

test('gRPC: a mask selects the changed fields, and fields missing in the message are cleared', async () => {
  const values = { description: 'new', bundles: ['ai'] }
  await overGrpc(['description'], values, { ...old, description: 'new' })
  await overGrpc(['description', 'active_tags'], values, { ...old, description: 'new', activeTags: [] })
  await overGrpc(['activeTags'], values, { ...old, activeTags: [] })
  await overGrpc(['create_time', 'uid'], values, old)
})

test('gRPC: without a mask, only non-empty fields change', async () => {
  await overGrpc([], { description: 'new' }, { ...old, description: 'new' })
  await overGrpc([], { description: '', bundles: [] }, old)
  await overGrpc([], {}, old)
  await overGrpc(
    [],
    { activeTags: ['9'], catalogTier: 6 as never },
    { ...old, activeTags: ['9'], catalogTier: 6 as never },
  )
})

test('gRPC: a star replaces all fields except fixed ones', async () => {
  await overGrpc(['*'], { description: 'new' }, { ...empty, description: 'new' })
  await overGrpc(['*'], {}, empty)
  await fresh()
  await grpc.updateRepo({ repo: { uid: repo.uid, name: 'another' }, updateMask: { paths: ['*'] } })
  assert.deepEqual(await stored(), empty)
})

test('gRPC: errors name fields as over REST', async () => {
  const { uid } = await fresh()
  const update = (values: object, ...paths: string[]) =>
    grpc.updateRepo({ repo: { uid, ...values }, updateMask: { paths } })
  await refusedOverGrpc(update({}, 'other'), 3, 'update_mask')
  await refusedOverGrpc(update({}, '*', 'description'), 3, 'update_mask')
  await refusedOverGrpc(update({ name: 'another' }), 3, 'name')
  await refusedOverGrpc(update({ description: '\n' }), 3, 'description')
  await refusedOverGrpc(update({ catalogTier: 99 }), 3, 'catalog_tier')
  await refusedOverGrpc(update({ description: 'a\0b' }), 3, 'description')
  await refusedOverGrpc(update({ syncConfig: { source: uid } }), 3, 'sync_config.source')
  await refusedOverGrpc(update({ customOverlay: { environment: { PINFOLD_X: '' } } }), 3, 'custom_overlay.environment')
  await refusedOverGrpc(update({ customOverlay: {} }), 9)
  await refusedOverGrpc(grpc.updateRepo({}), 3, 'uid')
  await refusedOverGrpc(grpc.updateRepo({ repo: { uid: `${group}/${'0'.repeat(16)}` } }), 5)
  assert.equal((await update({ customOverlay: {}, syncConfig: {} }, 'description')).description, '')
})

test('gRPC: the required permissions are the same as over REST', async () => {
  const { uid } = await fresh()
  using anonymous = grpcClientOf(pinfold, ReposService, undefined)
  await refusedOverGrpc(anonymous.getRepo({ uid }), 16)
  const member = await pinfold.seed.member(group, roleUids.editor)
  using editor = grpcClientOf(pinfold, ReposService, await pinfold.tokenFor(member.uid))
  assert.equal((await editor.updateRepo({ repo: { uid, description: 'mine' } })).description, 'mine')
  await refusedOverGrpc(editor.updateRepo({ repo: { uid, bundles: ['ai'] } }), 7)
  await refusedOverGrpc(editor.updateRepo({ repo: { uid }, updateMask: { paths: ['*'] } }), 7)
  await refusedOverGrpc(editor.updateRepoReadme({ repoReadme: { uid, content: 'x' } }), 7)
})

test('gRPC: a readme changes if the mask names it, or if it is not empty', async () => {
  const { uid } = await fresh()
  const write = async (content: string, ...paths: string[]) => {
    const updated = await grpc.updateRepoReadme({ repoReadme: { uid, content }, updateMask: { paths } })
    assert.equal((await grpc.getRepoReadme({ uid })).content, updated.content)
    return updated.content
  }
  assert.equal(await write('first'), 'first')
  assert.equal(await write(''), 'first')
  assert.equal(await write('second', '*'), 'second')
  assert.equal(await write('', 'content'), '')
})
