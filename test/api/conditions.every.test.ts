// Every method that changes something, with each kind of precondition and sent twice: what the contract says of it follows
// from the methods that show what it changes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildSubjects, isRead } from '#api/conditions/subjects.ts'
import { buildEventTable } from '#api/event-table.ts'
import { buildEndpoints } from '#api/methods.ts'
import { eventBodies, services } from '#api/services.ts'
import { makeCalls, requestOf, type Sending } from '../reference/run-calls.ts'
import { type Answer, clientOf } from '../support/pinfold.ts'

const endpoints = buildEndpoints(services)
const subjects = buildSubjects(endpoints, buildEventTable(services, eventBodies))

/** Made when they are sent, so that no two of them are the same. */
let keys = 0

async function etagBefore({ endpoint, world, request, token }: Sending): Promise<string | undefined> {
  const subject = subjects.of(endpoint)!
  const { output } = subject.shows.desc
  // A tag that is to be made is looked for in a list, which has no ETag.
  if (output !== subject.resource) return undefined
  const [scope] = Object.values(subject.askFor(flat(request, endpoint)) as object).filter(
    (one) => typeof one === 'string' && !one.includes('.'),
  )
  const field = subject.shows.desc.input.fields[0]!.jsonName
  const { path } = requestOf(subject.shows.desc, { [field]: scope })
  const answer = await clientOf(`http://127.0.0.1:${world.pinfold.port}`, token).call('GET', path)
  assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  return answer.headers.get('etag') ?? assert.fail(`${path} has no ETag`)
}

/** JSON is as good as a message for what finds a uid in it. */
const flat = (request: object, { desc }: Sending['endpoint']) =>
  ({ $typeName: desc.input.typeName, ...request }) as never

async function twice(sending: Sending, headers: Record<string, string>): Promise<Answer> {
  const { world, name, send } = sending
  const named = { ...headers, 'idempotency-key': `"call-${keys++}"` }
  const answer = await send(named)
  assert.equal(answer.status, 200, `${name}: ${answer.text}`)
  const events = (await world.pinfold.events()).length
  const again = await send(named)
  assert.equal(again.status, 200, `${name} again: ${again.text}`)
  assert.equal(again.headers.get('etag'), answer.headers.get('etag'), name)
  // What changes nothing has nothing to remember, and answers anew.
  if (events > 0 && !/Check|Verify/.test(name)) assert.equal(again.text, answer.text, name)
  assert.equal((await world.pinfold.events()).length, events, `${name} has told twice`)
  return answer
}

test('every method that changes something does so once, and only from the state that the client names', async () => {
  const seen = { subject: 0, none: 0 }
  const others: string[] = []
  await makeCalls(async (sending) => {
    const { endpoint, name, send, token } = sending
    if (isRead(endpoint)) return send()
    // Whoever has deleted the own account is nobody any more.
    if (endpoint.method.access.mode === 'open' || name === 'auth.Auth/Delete') return send()
    const stale = await send({ 'if-match': '"stale"' })
    assert.notEqual(token, undefined)
    if (!subjects.of(endpoint)) {
      seen.none++
      assert.equal(stale.status, 400, `${name}: ${stale.text}`)
      assert.match(stale.text, /If-Match/)
      return twice(sending, {})
    }
    seen.subject++
    assert.equal(stale.status, 412, `${name}: ${stale.text}`)
    assert.match(stale.text, /ETAG_MISMATCH/)
    const etag = await etagBefore(sending)
    if (etag === undefined) return twice(sending, { 'if-none-match': '*' })
    assert.equal((await send({ 'if-none-match': '*' })).status, 412, name)
    const answer = await twice(sending, { 'if-match': etag })
    const shown = answer.headers.get('etag')
    if (shown !== null && endpoint.method.version !== 'v1' && (await etagBefore(sending)) !== shown) others.push(name)
    return answer
  })
  assert.deepEqual(others, [], 'answer with another ETag than what shows it')
  assert.ok(seen.subject > 40 && seen.none > 30, JSON.stringify(seen))
})
