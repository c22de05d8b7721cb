import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Json, roleUids } from '../support/pinfold.ts'
import { type Descriptor, imageOf, registryClient, type Send, startRegistry, types } from '../support/registry.ts'

let registry: Awaited<ReturnType<typeof startRegistry>>
let first: Descriptor
let second: Descriptor
const texts = new Map<string, string>()

before(async () => {
  registry = await startRegistry()
  first = await image('one')
  second = await image('two')
})
after(() => registry[Symbol.asyncDispose]())

async function image(mark: string, name = 'acme/app'): Promise<Descriptor> {
  const config = await registry.pusher.pushBlob(name, '{}', types.config)
  const text = JSON.stringify(imageOf(config, [], { annotations: { mark } }))
  const pushed = await registry.pusher.pushManifest(name, text)
  texts.set(pushed.digest, text)
  return pushed
}

const quoted = ({ digest }: Pick<Descriptor, 'digest'>): string => `"${digest}"`

function put(
  reference: string,
  { digest }: Descriptor,
  headers: Record<string, string> = {},
  client = registry.pusher,
) {
  const send: Send = { body: texts.get(digest)!, headers: { 'content-type': types.image, ...headers } }
  return client.call('PUT', `acme/app/manifests/${reference}`, send)
}

async function digestAt(tag: string): Promise<string | undefined> {
  const { headers } = await registry.pusher.call('HEAD', `acme/app/manifests/${tag}`)
  return headers['docker-content-digest'] as string | undefined
}

async function movesOf(tag: string): Promise<Json[]> {
  const { body } = await registry.pusher.ok(200, 'GET', `acme/app/_svc/history/${tag}`)
  return body.records ?? body.history ?? []
}

test('If-None-Match creates a tag only if it does not exist', async () => {
  assert.equal((await put('made', first, { 'if-none-match': '*' })).status, 201)
  const refused = await put('made', second, { 'if-none-match': '*' })
  assert.equal(refused.status, 412)
  assert.equal(refused.headers.etag, quoted(first))
  const [error] = refused.body.errors
  assert.deepEqual([error.code, error.detail], ['DENIED', { digest: first.digest }])
  assert.match(error.message, /the tag made points to sha256:/)
  assert.equal(await digestAt('made'), first.digest)
})

test('If-Match updates a tag only from the given digest', async () => {
  await put('moved', first)
  for (const ifMatch of [quoted(second), `W/${quoted(first)}`]) {
    const refused = await put('moved', second, { 'if-match': ifMatch })
    assert.deepEqual([refused.status, refused.headers.etag], [412, quoted(first)], ifMatch)
  }
  assert.equal(await digestAt('moved'), first.digest)
  assert.equal((await put('moved', second, { 'if-match': `"sha256:00", ${quoted(first)}` })).status, 201)
  assert.equal((await put('moved', first, { 'if-match': '*' })).status, 201)
  assert.equal(await digestAt('moved'), first.digest)
})

test('If-Match for a missing tag fails, and creates no repository', async () => {
  for (const ifMatch of ['*', quoted(first)]) {
    const refused = await put('missing', first, { 'if-match': ifMatch })
    assert.deepEqual([refused.status, refused.headers.etag], [412, undefined])
  }
  assert.equal(await digestAt('missing'), undefined)
  const send = { body: '{"schemaVersion":2,"manifests":[]}', headers: { 'content-type': types.index, 'if-match': '*' } }
  assert.equal((await registry.pusher.call('PUT', 'acme/nowhere/manifests/1.0', send)).status, 412)
  assert.equal((await registry.pusher.call('GET', 'acme/nowhere/tags/list')).status, 404)
})

test('a refused push adds no row to the tag history and no manifest', async () => {
  await put('still', first)
  const before = await movesOf('still')
  const third = await image('three', 'acme/other')
  const refused = await put('still', third, { 'if-match': quoted(second) })
  assert.equal(refused.status, 412)
  assert.deepEqual(await movesOf('still'), before)
  assert.equal((await registry.pusher.call('HEAD', `acme/app/manifests/${third.digest}`)).status, 404)
})

test('If-Match deletes a tag only if it has the given digest', async () => {
  await put('deleted', first)
  const remove = (headers: Record<string, string>) =>
    registry.registryOperator.call('DELETE', 'acme/app/manifests/deleted', { headers })
  assert.equal((await remove({ 'if-match': quoted(second) })).status, 412)
  assert.equal(await digestAt('deleted'), first.digest)
  assert.equal((await remove({ 'if-none-match': '*' })).status, 412)
  assert.equal(await digestAt('deleted'), first.digest)
  assert.equal((await remove({ 'if-match': quoted(first) })).status, 202)
  assert.equal((await remove({ 'if-match': quoted(first) })).status, 404)
  await put('deleted', second)
  assert.equal((await remove({ 'if-match': '*' })).status, 202)
  for (const headers of [{ 'if-match': '*' }, { 'if-none-match': '*' }, {}]) {
    assert.equal((await remove(headers)).status, 404)
  }
})

test('preconditions apply only to tags, and a malformed one is ignored', async () => {
  const bad: [string, Record<string, string>][] = [
    [first.digest, { 'if-match': quoted(first) }],
    [`${first.digest}?tag=a&tag=b`, { 'if-none-match': '*' }],
    ['1.0', { 'if-match': first.digest }],
  ]
  for (const [reference, headers] of bad) {
    const refused = await put(reference, first, headers)
    assert.deepEqual([refused.status, refused.body.errors[0].code], [400, 'UNSUPPORTED'], reference)
  }
  const remove = await registry.registryOperator.call('DELETE', `acme/app/manifests/${first.digest}`, {
    headers: { 'if-match': quoted(second) },
  })
  assert.equal(remove.status, 400)
})

test('denies a caller without permission to update a tag, without revealing its digest', async () => {
  await put('kept', first)
  const refused = await put('kept', second, { 'if-match': quoted(second) }, registry.puller as never)
  assert.equal(refused.status, 403)
  assert.ok(!refused.bytes.toString().includes(first.digest))
})

test('rejects an update of an immutable tag even if If-Match is correct', async () => {
  await put('fixed', first)
  const { body } = await registry.operator.post(`/registry/v2/tagRules/${registry.org.uid}`, {
    tags: ['fixed'],
    immutable: true,
  })
  const detail = { rule: body.uid, tags: ['fixed'] }
  const before = await movesOf('fixed')
  const remove = (headers: Record<string, string>) =>
    registry.registryOperator.call('DELETE', 'acme/app/manifests/fixed', { headers })
  for (const headers of [{ 'if-match': quoted(second) }, { 'if-none-match': '*' }]) {
    const [moved, deleted] = [await put('fixed', second, headers), await remove(headers)]
    assert.deepEqual([moved.status, moved.headers.etag, moved.body.errors[0].detail], [403, undefined, detail])
    assert.deepEqual(
      [deleted.status, deleted.headers.etag, deleted.body.errors[0].detail],
      [409, undefined, { until: null, ...detail }],
    )
  }
  // An update to the current digest changes nothing, so only the precondition is checked.
  const same = await put('fixed', first, { 'if-match': quoted(second) })
  assert.deepEqual([same.status, same.headers.etag], [412, quoted(first)])
  assert.deepEqual([await digestAt('fixed'), await movesOf('fixed')], [first.digest, before])
})

test('one of several clients that update a tag from the same digest succeeds in each round', async () => {
  const writers = 16
  const rounds = 5
  const [made] = await Promise.all([image('start')])
  await put('raced', made!)
  const images: Descriptor[] = []
  for (let i = 0; i < writers; i++) images.push(await image(`racer ${i}`))
  // Each client has a separate connection.
  const { uid } = await registry.seed.member(registry.org.uid, roleUids.push)
  const clients = await Promise.all(images.map(() => registry.registryAs(uid)))
  const path: string[] = [made!.digest]
  for (let round = 0; round < rounds; round++) {
    const from = path.at(-1)!
    // An update to the current digest would not count as an update.
    const racers = images.filter(({ digest }) => digest !== from)
    const answers = await Promise.all(
      racers.map((to, i) => put('raced', to, { 'if-match': `"${from}"` }, clients[i] as never)),
    )
    const winners = racers.filter((_, i) => answers[i]!.status === 201)
    assert.deepEqual(
      [winners.length, answers.filter(({ status }) => status === 412).length],
      [1, racers.length - 1],
      answers.map(({ status }) => status).join(' '),
    )
    assert.equal(await digestAt('raced'), winners[0]!.digest)
    path.push(winners[0]!.digest)
  }
  const moves = (await movesOf('raced')).map(({ digest }) => digest)
  assert.deepEqual(moves, path)
})

test('one of several clients that create the same tag succeeds', async () => {
  const images: Descriptor[] = []
  for (let i = 0; i < 12; i++) images.push(await image(`maker ${i}`))
  const answers = await Promise.all(images.map((to) => put('won', to, { 'if-none-match': '*' })))
  const winners = images.filter((_, i) => answers[i]!.status === 201)
  assert.equal(winners.length, 1, answers.map(({ status }) => status).join(' '))
  assert.equal(await digestAt('won'), winners[0]!.digest)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201, 412]))
})

test('a request without a token gets no information from preconditions', async () => {
  const nobody = registryClient(registry.pusher.origin, undefined)
  const refused = await put('kept', second, { 'if-match': quoted(second) }, nobody as never)
  assert.equal(refused.status, 401)
})
