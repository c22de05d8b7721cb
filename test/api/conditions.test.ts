import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import { sql } from '#db/sql.ts'
import { sweepRequestIds } from '#domains/iam/iam.job.ts'
import { GetGroupRequestSchema, GroupSchema, UpdateGroupRequestSchema } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { signAccessToken } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Answer, type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { plantManifest, plantTag } from '../support/tags.ts'

let scene: Awaited<ReturnType<typeof startScene>>
let editor: Client
let editorUid: string
let now = Date.parse('2026-11-01T00:00:00Z')

before(async () => {
  scene = await startScene({ clock: () => new Date(now) })
  editorUid = (await scene.pinfold.seed.member(scene.org.uid, roleUids.owner)).uid
  editor = await scene.pinfold.as(editorUid)
})
after(() => scene.pinfold[Symbol.asyncDispose]())

const pathOf = ({ uid }: Json): string => `/iam/v2/groups/${uid}`
const folder = () => scene.pinfold.seed.group(scene.org.uid)
const patch = (group: Json, description: string, headers: Record<string, string>): Promise<Answer> =>
  editor.call('PATCH', pathOf(group), { description }, headers)
const etagOf = async (group: Json): Promise<string> => (await editor.get(pathOf(group))).headers.get('etag')!
const reasonOf = ({ body }: Answer): string => body.details[0].reason

test('two changes within one millisecond have different ETags, and the first ETag is stale after the second change', async () => {
  const group = await folder()
  const first = await etagOf(group)
  const one = await patch(group, 'one', { 'if-match': first })
  assert.equal(ok(one).description, 'one')
  const second = one.headers.get('etag')!
  assert.equal(second, await etagOf(group))
  assert.notEqual(second, first)
  const two = await patch(group, 'two', { 'if-match': second })
  assert.deepEqual([ok(two).updateTime, two.headers.get('etag') === second], [one.body.updateTime, false])
  const stale = await patch(group, 'three', { 'if-match': second })
  assert.deepEqual([stale.status, stale.body.code, reasonOf(stale)], [412, 10, 'ETAG_MISMATCH'])
  assert.equal(ok(await editor.get(pathOf(group))).description, 'two')
})

test('one of several concurrent changes with the same ETag succeeds; the others get 412', async () => {
  const group = await folder()
  for (let round = 0; round < 3; round++) {
    const etag = await etagOf(group)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => patch(group, `round ${round} by ${i}`, { 'if-match': etag })),
    )
    const statuses = answers.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
    assert.equal(statuses.filter((status) => status === 412).length, 11, statuses.join(' '))
  }
})

test('tag conditions accept a digest: If-Match moves the tag only from it, If-None-Match: * only creates, in both versions', async () => {
  const repo = await scene.pinfold.seed.repo(scene.org.uid)
  const tag = await plantTag(scene.pinfold, repo.uid, 'stable', 'one')
  const two = await plantManifest(scene.pinfold, repo.uid, 'two')
  const v2 = (headers: Record<string, string>, name = 'stable') =>
    editor.call('POST', `/registry/v2/tags/${repo.uid}`, { name, digest: two }, headers)
  const v1 = (headers: Record<string, string>, name = 'stable') =>
    editor.call('POST', `/registry/v1/tags/${repo.uid}`, { name, digest: two }, headers)
  for (const make of [v2, v1]) {
    assert.equal((await make({ 'if-none-match': '*' })).status, 412)
    assert.equal((await make({ 'if-match': `"${two}"` })).status, 412)
    assert.equal((await make({ 'if-match': '*' }, 'missing')).status, 412)
  }
  const { digest } = ok(await editor.get(`/registry/v2/tags/${tag.uid}`))
  assert.equal(digest, tag.digest)
  assert.equal((await v2({ 'if-match': `"${tag.digest}"` })).status, 200)
  assert.equal((await v1({ 'if-none-match': '*' }, 'made')).status, 200)
  const racers = await Promise.all(
    Array.from({ length: 10 }, async (_, i) => plantManifest(scene.pinfold, repo.uid, `racer ${i}`)),
  )
  const moves = await Promise.all(
    racers.map((to, i) => {
      const version = i % 2 ? 'v1' : 'v2'
      const headers = { 'if-match': `"${two}"` }
      return editor.call('POST', `/registry/${version}/tags/${repo.uid}`, { name: 'stable', digest: to }, headers)
    }),
  )
  const statuses = moves.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
  assert.equal(statuses.filter((status) => status === 412).length, 9, statuses.join(' '))
})

test('gRPC accepts the same conditions as metadata', async () => {
  const group = await folder()
  const client = new grpc.Client(`127.0.0.1:${scene.pinfold.port}`, grpc.credentials.createInsecure())
  const call = (name: string, bytes: Uint8Array, more: Record<string, string> = {}) =>
    new Promise<{ etag: string; description: string }>((resolve, reject) => {
      const metadata = new grpc.Metadata()
      metadata.set('authorization', `Bearer ${editor.token}`)
      for (const [key, value] of Object.entries(more)) metadata.set(key, value)
      let etag = ''
      const path = `/pinfold.platform.iam.v2.GroupsService/${name}`
      client
        .makeUnaryRequest(
          path,
          Buffer.from,
          (read) => fromBinary(GroupSchema, read),
          bytes as Buffer,
          metadata,
          (error, answer) => (error ? reject(error) : resolve({ etag, description: answer!.description })),
        )
        .on('metadata', (said) => {
          etag = String(said.get('etag')[0])
        })
    })
  const update = (description: string, more: Record<string, string>) => {
    const request = { group: { uid: group.uid, description }, updateMask: { paths: ['description'] } }
    return call('UpdateGroup', toBinary(UpdateGroupRequestSchema, create(UpdateGroupRequestSchema, request)), more)
  }
  const read = await call(
    'GetGroup',
    toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: group.uid })),
  )
  assert.equal(read.etag, await etagOf(group))
  await assert.rejects(update('stale', { 'if-match': '"stale"' }), { code: grpc.status.ABORTED })
  const changed = await update('right', { 'if-match': read.etag, 'idempotency-key': 'grpc-1' })
  assert.deepEqual(changed, { etag: await etagOf(group), description: 'right' })
  assert.deepEqual(await update('right', { 'if-match': read.etag, 'idempotency-key': 'grpc-1' }), changed)
  client.close()
})

test('a request sent many times at once with one idempotency key runs once, and each answer is the same', async () => {
  const before = (await scene.pinfold.events()).length
  const body = { name: 'made-once' }
  const headers = { 'idempotency-key': '"b7c1"' }
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => editor.call('POST', `/iam/v2/groups/${scene.org.uid}`, body, headers)),
  )
  for (const answer of answers) assert.equal(ok(answer).uid, answers[0]!.body.uid)
  assert.equal((await scene.pinfold.events()).length, before + 1)
  const other = await editor.call('POST', `/iam/v2/groups/${scene.org.uid}`, { name: 'another' }, headers)
  assert.deepEqual([other.status, reasonOf(other)], [400, 'REQUEST_ID_REUSED'])
  // The caller's own name appears in the response.
  const another = await scene.member(roleUids.owner)
  assert.equal(
    (await another.call('POST', `/iam/v2/groups/${scene.org.uid}`, { name: 'not-mine' }, headers)).status,
    200,
  )
})

test('refuses an idempotency key that was used with a session of another organization', async () => {
  const { pinfold } = scene
  const orgs = [await pinfold.seed.group(), await pinfold.seed.group()]
  const person = (await pinfold.seed.person()).uid
  await pinfold.seed.binding(orgs[0]!.uid, person, roleUids.owner)
  // Tokens from two sign-in providers. Each token is valid only in its organization.
  const clients: Client[] = []
  for (const { uid: organization } of orgs) {
    const made = { issuer: pinfold.url, audience: pinfold.url, subject: person, now: new Date(now) }
    const session = { uid: '', organization, authTime: 0 }
    clients.push(pinfold.withToken(await signAccessToken(pinfold.app.keyring, { ...made, session })))
  }
  const [one, other] = clients as [Client, Client]
  const { uid } = ok(await one.post(`/control/v1/pushTokens/${orgs[0]!.uid}`, { name: 'laptop' })).pushToken
  const revoke = (by: Client) =>
    by.call('DELETE', `/control/v1/pushTokens/${uid}`, undefined, { 'idempotency-key': 'again' })
  assert.equal((await revoke(other)).status, 404, 'it reaches another organization only')
  ok(await revoke(one))
  ok(await revoke(one))
  const refused = await revoke(other)
  assert.deepEqual([refused.status, refused.status === 400 && reasonOf(refused)], [400, 'REQUEST_ID_REUSED'])
})

test('does not store failed answers, and returns no stored answer after the caller lost the permission', async () => {
  const group = await folder()
  const key = { 'idempotency-key': 'fails' }
  assert.equal((await patch(group, 'x', { ...key, 'if-match': '"stale"' })).status, 412)
  assert.equal((await patch(group, 'x', key)).status, 200)
  const leaver = await scene.pinfold.seed.identity(scene.org.uid)
  const { uid } = await scene.pinfold.seed.binding(scene.org.uid, leaver.uid, roleUids.owner)
  const client = await scene.pinfold.as(leaver.uid)
  const send = () => client.call('PATCH', pathOf(group), { description: 'y' }, key)
  assert.equal((await send()).status, 200)
  assert.equal((await send()).status, 200)
  assert.equal((await scene.operator.delete(`/iam/v2/roleBindings/${uid}`)).status, 200)
  assert.equal((await send()).status, 403)
})

test('a request whose answer was lost does not run again, and gets no invented answer', async () => {
  const group = await folder()
  const { db } = scene.pinfold.app
  assert.equal((await patch(group, 'lost', { 'idempotency-key': 'lost' })).status, 200)
  await db.tx((tx) => tx.run(sql`UPDATE request_ids SET answer = NULL`))
  const before = (await scene.pinfold.events()).length
  const again = await patch(group, 'lost', { 'idempotency-key': 'lost' })
  assert.deepEqual([again.status, reasonOf(again)], [409, 'ANSWER_UNKNOWN'])
  assert.equal((await scene.pinfold.events()).length, before)
})

test('refuses a malformed condition, and names the header', async () => {
  const group = await folder()
  const bad: Record<string, string>[] = [
    { 'if-match': 'unquoted' },
    { 'if-none-match': '' },
    { 'idempotency-key': 'two words' },
    { 'idempotency-key': 'x'.repeat(129) },
  ]
  for (const headers of bad) {
    const answer = await patch(group, 'bad', headers)
    assert.equal(answer.status, 400, answer.text)
    const [field] = Object.keys(headers)
    assert.equal(answer.body.details[1].fieldViolations[0].field.toLowerCase(), field)
  }
  assert.equal((await editor.call('GET', pathOf(group), undefined, { 'if-match': '"stale"' })).status, 200)
  const missing = { uid: `${scene.org.uid}/${'0'.repeat(16)}` }
  assert.equal((await patch(missing, 'gone', { 'if-match': '*' })).status, 404)
})

test('stores answers encrypted, and deletes them after a day', async () => {
  const { app } = scene.pinfold
  const headers = { 'idempotency-key': 'secret' }
  const made = await editor.call(
    'POST',
    `/control/v1/pushTokens/${scene.org.uid}`,
    { name: 'ci', ttl: '3600s' },
    headers,
  )
  assert.equal(made.status, 200, made.text)
  const again = await editor.call(
    'POST',
    `/control/v1/pushTokens/${scene.org.uid}`,
    { name: 'ci', ttl: '3600s' },
    headers,
  )
  assert.equal(again.text, made.text)
  const { secret, token = secret } = made.body
  const rows = await app.db.all<{ answer: Uint8Array | null }>(sql`SELECT answer FROM request_ids`)
  assert.ok(rows.length > 0 && !rows.some(({ answer }) => answer && Buffer.from(answer).includes(String(token))))
  // Tokens expire before that time.
  now += 25 * 60 * 60_000
  editor = await scene.pinfold.as(editorUid)
  const anew = await editor.call('POST', `/iam/v2/groups/${scene.org.uid}`, { name: 'a-day-later' }, headers)
  assert.equal(anew.status, 200, anew.text)
  await runJob(app, sweepRequestIds)
  const [left] = await app.db.all<{ n: number }>(sql`SELECT count(*) AS n FROM request_ids`)
  assert.equal(Number(left!.n), 1)
})

test('limits the size of stored answers per caller and day; a repeat beyond it only learns that the request was carried out', async () => {
  const { repeats, db } = scene.pinfold.app
  const answer = Buffer.alloc(256 * 1024, 'a')
  const keep = async (caller: string, key: string, bytes: Buffer = answer) => {
    const request = { caller, key, content: ['something'] }
    assert.equal(await db.tx((tx) => repeats.claim(tx, request)), true)
    await repeats.answer(request, bytes)
    return repeats.find(request)
  }
  for (let i = 0; i < 64; i++) assert.notEqual(await keep('greedy', `key-${i}`), 'carried out')
  assert.equal(await keep('greedy', 'one-more', Buffer.from('a')), 'carried out')
  assert.notEqual(await keep('modest', 'one-more', Buffer.from('a')), 'carried out')
  now += 24 * 60 * 60_000
  assert.notEqual(await keep('greedy', 'tomorrow'), 'carried out')
  assert.equal(await keep('greedy', 'long', Buffer.alloc(256 * 1024 + 1)), 'carried out')
  await runJob(scene.pinfold.app, sweepRequestIds)
  now += 24 * 60 * 60_000
  await runJob(scene.pinfold.app, sweepRequestIds)
})
