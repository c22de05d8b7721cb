// The history of a tag for registry clients: at the path of this server, and at the path of the draft.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { assignTag } from '#domains/registry/tags/tag-moves.service.ts'
import { ok } from '../support/expect.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { digestOf, ledgerOf, plantManifest, plantTag } from '../support/tags.ts'

const start = Date.parse('2026-05-01T10:00:00.000Z')
let now = start
let pinfold: Pinfold
let host: string
let org: string
let reader: Client
let stranger: Client

before(async () => {
  pinfold = await startPinfold({ clock: () => new Date(now) })
  host = new URL(pinfold.url).host
  org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const elsewhere = (await pinfold.seed.group()).uid
  reader = await pinfold.as((await pinfold.seed.member(org, roleUids.pull)).uid, { audience: host })
  stranger = await pinfold.as((await pinfold.seed.member(elsewhere, roleUids.pull)).uid, { audience: host })
})
after(() => pinfold[Symbol.asyncDispose]())

const minute = (i: number): string => new Date(start + i * 60_000).toISOString()

/** Updates a tag once a minute, to a new digest each time. */
async function moves(repo: string, tag: string, count: number): Promise<string[]> {
  const digests: string[] = []
  for (let i = 0; i < count; i++) {
    now = start + i * 60_000
    digests.push((await plantTag(pinfold, repo, tag, `${tag} ${i}`)).digest)
  }
  return digests
}

let repos = 0
async function newRepo(): Promise<{ uid: string; path: string }> {
  const name = `app${repos++}`
  return { uid: (await pinfold.seed.repo(org, { name })).uid, path: `/v2/acme/${name}` }
}

const history = async (path: string, query = '', client = reader) => client.get(`${path}${query}`)
const recordsOf = (answer: Answer): Json[] => ok(answer).history

test('the history lists each digest of the tag, oldest first, with server times', async () => {
  const { uid, path } = await newRepo()
  const digests = await moves(uid, 'latest', 4)
  await plantTag(pinfold, uid, 'other')
  const answer = await history(`${path}/_svc/history/latest`)
  const expected = digests.map((digest, i) => ({ updateTimestamp: minute(i), digest }))
  assert.deepEqual(ok(answer), { history: expected })
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const head = await reader.call('HEAD', `${path}/_svc/history/latest`)
  assert.equal(head.headers.get('content-length'), String(answer.text.length))
})

test('the time window includes its start and excludes its end, in each time format', async () => {
  const { uid, path } = await newRepo()
  await moves(uid, 'latest', 6)
  const at = async (query: string) => recordsOf(await history(`${path}/_svc/history/latest`, query)).map(minuteOf)
  assert.deepEqual(await at(`?start=${minute(2)}`), [2, 3, 4, 5])
  assert.deepEqual(await at(`?end=${minute(2)}`), [0, 1])
  assert.deepEqual(await at(`?start=${minute(2)}&end=${minute(4)}`), [2, 3])
  assert.deepEqual(await at('?start=2026-05-01T12:02:00%2B02:00&end=2026-05-01T06:04:00-04:00'), [2, 3])
  assert.deepEqual(await at('?start=2026-05-01T12:02:00+02:00'), [2, 3, 4, 5])
  assert.deepEqual(await at('?start=2026-05-01T10:02:00.000000001Z&end=2026-05-01T10:04:00.000000001Z'), [3, 4])
  assert.deepEqual(await at('?start=2026-05-01&end=2026-05-02'), [0, 1, 2, 3, 4, 5])
  assert.deepEqual(await at('?start=2026-05-02'), [])
  assert.deepEqual(await at(`?start=${minute(4)}&end=${minute(2)}`), [])
  assert.deepEqual(await at(`?start=${minute(2)}&end=${minute(2)}`), [])
})

const minuteOf = ({ updateTimestamp }: Json): number => (Date.parse(updateTimestamp) - start) / 60_000

test('an error for an invalid time names its parameter', async () => {
  const { uid, path } = await newRepo()
  await plantTag(pinfold, uid, 'latest')
  for (const [parameter, query] of [
    ['start', '?start=yesterday'],
    ['start', '?start='],
    ['start', '?start=2026-13-01'],
    ['end', '?end=1714557600'],
    ['end', '?end=2026-05-01T10:00:00'],
  ]) {
    const { status, body } = await history(`${path}/_svc/history/latest`, query)
    assert.deepEqual([status, body.errors[0].detail], [400, { parameter }], query)
  }
})

test('an answer has at most a thousand records, and a link to the next', async () => {
  const { uid, path } = await newRepo()
  const [one, two] = [await plantManifest(pinfold, uid, '1'), await plantManifest(pinfold, uid, '2')]
  now = start
  const repo = (await findRepoRow(pinfold.app.db, { uid }))!
  const mover = { repo, name: 'busy', now: minute(0), actor: '', source: 'oci' } as const
  await pinfold.app.db.tx(async (tx) => {
    for (let i = 0; i < 1100; i++) await assignTag(tx, pinfold, { ...mover, digest: i % 2 ? two : one })
  })
  const first = recordsOf(await history(`${path}/_svc/history/busy`))
  assert.equal(first.length, 1000)
  const next = recordsOf(await history(`${path}/_svc/history/busy`, `?start=${first.at(-1)!.updateTimestamp}`))
  const times = [...first, ...next.slice(1)].map(({ updateTimestamp }) => updateTimestamp as string)
  assert.deepEqual(next[0], first.at(-1))
  assert.deepEqual(
    times,
    (await ledgerOf(pinfold, uid)).map(({ time }) => time),
  )
  assert.equal(new Set(times).size, 1100)
})

test('the same digest again adds a record only after a deletion', async () => {
  const { uid, path } = await newRepo()
  now = start
  const tag = await plantTag(pinfold, uid, 'v1')
  now += 60_000
  await plantTag(pinfold, uid, 'v1')
  assert.deepEqual(recordsOf(await history(`${path}/_svc/history/v1`)).map(minuteOf), [0])
  ok(await pinfold.operator.delete(`/registry/v2/tags/${tag.uid}`))
  assert.deepEqual(
    recordsOf(await history(`${path}/_svc/history/v1`)).map(minuteOf),
    [0],
    'a deleted tag is remembered',
  )
  now += 60_000
  await plantTag(pinfold, uid, 'v1')
  assert.deepEqual(recordsOf(await history(`${path}/_svc/history/v1`)).map(minuteOf), [0, 2])
})

test('returns 404 for an unknown tag, and the usual registry error for an unknown or forbidden image', async () => {
  const { uid, path } = await newRepo()
  await plantTag(pinfold, uid, 'latest')
  for (const tag of ['never', 'lates', 'latest2', '%20', '_svc']) {
    const { status, body } = await history(`${path}/_svc/history/${tag}`)
    assert.deepEqual([status, body.errors[0].code], [404, 'MANIFEST_UNKNOWN'], tag)
  }
  const missing = await history('/v2/acme/missing/_svc/history/latest')
  assert.deepEqual([missing.status, missing.body.errors[0].code], [404, 'NAME_UNKNOWN'])
  for (const one of [path, '/v2/acme/missing']) {
    const { status, body } = await history(`${one}/_svc/history/latest`, '', stranger)
    assert.deepEqual([status, body.errors[0].code], [403, 'DENIED'], one)
  }
  const nobody = await pinfold.anonymous.get(`${path}/_svc/history/latest`)
  assert.equal(nobody.status, 401)
  assert.match(nobody.headers.get('www-authenticate') ?? '', /scope="repository:acme\/app\d+:pull"/)
  const post = await reader.post(`${path}/_svc/history/latest`, {})
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD'])
})

test('a token for one image cannot read the history of another', async () => {
  const [one, two] = [await newRepo(), await newRepo()]
  for (const { uid } of [one, two]) await plantTag(pinfold, uid, 'latest')
  const scope = `repository:${one.path.slice('/v2/'.length)}:pull`
  const { token } = ok(await reader.get(`/token?scope=${scope}`))
  const holder = pinfold.withToken(token)
  assert.equal(recordsOf(await history(`${one.path}/_svc/history/latest`, '', holder)).length, 1)
  const other = await history(`${two.path}/_svc/history/latest`, '', holder)
  assert.equal(other.status, 401)
  assert.match(other.headers.get('www-authenticate') ?? '', /insufficient_scope/)
})

test('anonymous clients can read and cache the history of free tags of a public image', async () => {
  const publicOrg = (await pinfold.seed.group('', { name: 'public' })).uid
  const { uid } = await pinfold.seed.repo(publicOrg, { name: 'base' })
  for (const tag of ['latest', '1.0']) await plantTag(pinfold, uid, tag)
  const { token } = ok(await pinfold.anonymous.get('/token?scope=repository:public/base:pull'))
  const anybody = pinfold.withToken(token)
  const path = '/v2/public/base/_svc/history'
  const answer = await anybody.get(`${path}/latest`)
  assert.equal(recordsOf(answer).length, 1)
  const etag = answer.headers.get('etag')!
  const again = await anybody.call('GET', `${path}/latest`, undefined, { 'if-none-match': etag })
  assert.deepEqual([again.status, again.text], [304, ''])
  now += 1000
  await plantTag(pinfold, uid, 'latest', 'another')
  const changed = await anybody.call('GET', `${path}/latest`, undefined, { 'if-none-match': etag })
  assert.equal(recordsOf(changed).length, 2)
  assert.equal((await anybody.get(`${path}/1.0`)).status, 401)
})

const drafted = (path: string, query = '', client = reader) => history(`${path}/_oci/tag-history/latest`, query, client)
const annotation = 'org.opencontainers.distribution.tag'
const indexType = 'application/vnd.oci.image.index.v1+json'
const imageType = 'application/vnd.oci.image.manifest.v1+json'

test('the draft format returns an index, newest first, with deletions', async () => {
  const { uid, path } = await newRepo()
  const [one, two] = await moves(uid, 'latest', 2)
  now = start + 2 * 60_000
  const { tags } = ok(await pinfold.operator.get(`/registry/v2/tags?uidp.children_of=${uid}`))
  ok(await pinfold.operator.delete(`/registry/v2/tags/${tags[0].uid}`))
  const answer = await drafted(path)
  assert.equal(answer.headers.get('content-type'), indexType)
  const entry = (i: number, digest: string, event: string) => ({
    mediaType: imageType,
    size: 'latest 0'.length,
    digest,
    annotations: { [`${annotation}.timestamp`]: minute(i), [`${annotation}.event`]: event },
  })
  const manifests = [entry(2, two!, 'deleted'), entry(1, two!, 'created'), entry(0, one!, 'created')]
  assert.deepEqual(ok(answer), { schemaVersion: 2, mediaType: indexType, manifests })
  assert.equal(answer.headers.get('link'), null)
})

const entriesOf = (answer: Answer): number[] =>
  (ok(answer).manifests as Json[]).map(
    ({ annotations }) => (Date.parse(annotations[`${annotation}.timestamp`]) - start) / 60_000,
  )

test('the draft format has exclusive time bounds, and an exact digest filter', async () => {
  const { uid, path } = await newRepo()
  const digests = await moves(uid, 'latest', 6)
  assert.deepEqual(entriesOf(await drafted(path, `?before=${minute(3)}`)), [2, 1, 0])
  assert.deepEqual(entriesOf(await drafted(path, `?since=${minute(3)}`)), [5, 4])
  assert.deepEqual(entriesOf(await drafted(path, `?since=${minute(1)}&before=${minute(4)}`)), [3, 2])
  assert.deepEqual(entriesOf(await drafted(path, '?since=2026-05-01T10:02:59.9999Z')), [5, 4, 3])
  assert.deepEqual(entriesOf(await drafted(path, `?digest=${digests[2]}`)), [2])
  assert.deepEqual(entriesOf(await drafted(path, `?digest=${digests[2]}&before=${minute(2)}`)), [])
  assert.deepEqual(entriesOf(await drafted(path, `?digest=${digestOf('never')}`)), [])
})

test('pages of the draft format continue by a link that keeps the other parameters', async () => {
  const { uid, path } = await newRepo()
  await moves(uid, 'latest', 7)
  const seen: number[][] = []
  let next: string | undefined = `${path}/_oci/tag-history/latest?n=3&since=${minute(0)}`
  while (next !== undefined) {
    const answer: Answer = await reader.get(next)
    seen.push(entriesOf(answer))
    next = /^<([^>]*)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1]
  }
  assert.deepEqual(seen, [
    [6, 5, 4],
    [3, 2, 1],
  ])
  const none = await drafted(path, '?n=0')
  assert.deepEqual([entriesOf(none), none.headers.get('link')], [[], null])
  for (const n of ['-1', 'x', '1.5', '']) assert.equal((await drafted(path, `?n=${n}`)).status, 400, n)
  assert.equal((await drafted(path, '?digest=x')).body.errors[0].code, 'DIGEST_INVALID')
  assert.equal((await drafted(path, '?before=x')).status, 400)
})

test('the draft format returns an empty history for a missing tag, not 404', async () => {
  const { path } = await newRepo()
  for (const one of [path, '/v2/acme/missing']) assert.deepEqual(entriesOf(await drafted(one)), [], one)
  assert.equal((await drafted(path, '', stranger)).status, 403)
  assert.equal((await drafted('/v2/acme/missing', '', stranger)).status, 403)
})

test('a setting turns off the draft format', async () => {
  await using off = await startPinfold({ ociTagHistory606: false })
  const group = (await off.seed.group('', { name: 'acme' })).uid
  const { uid } = await off.seed.repo(group, { name: 'app' })
  await plantTag(off, uid, 'latest')
  const client = await off.as((await off.seed.member(group, roleUids.pull)).uid, { audience: new URL(off.url).host })
  const answer = await client.get('/v2/acme/app/_oci/tag-history/latest?n=0')
  assert.deepEqual([answer.status, answer.body.errors[0].code], [404, 'UNSUPPORTED'])
  assert.equal(recordsOf(await client.get('/v2/acme/app/_svc/history/latest')).length, 1)
})
