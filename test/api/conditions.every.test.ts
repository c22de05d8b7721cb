// Preconditions and retries of each changing method. The expected results come from the contract and from the methods that return
// the changed resource.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DescMessage, getOption } from '@bufbuild/protobuf'
import { buildSubjects, isRead, passing } from '#api/conditions/subjects.ts'
import { buildEventTable } from '#api/event-table.ts'
import { buildEndpoints } from '#api/methods.ts'
import { eventBodies, services } from '#api/services.ts'
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.ts'
import { makeCalls, requestOf, type Sending } from '../reference/run-calls.ts'
import { type Answer, clientOf } from '../support/pinfold.ts'

const endpoints = buildEndpoints(services)
const subjects = buildSubjects(endpoints, buildEventTable(services, eventBodies))

/** Number of the next idempotency key, so that all requests have different keys. */
let keys = 0

async function etagBefore({ endpoint, world, request, token }: Sending): Promise<string | undefined> {
  const subject = subjects.of(endpoint)!
  const { output } = subject.shows.desc
  // The test finds a new tag in a list, which has no ETag.
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

/** JSON can replace a message in code that searches for a uid. */
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
  // A request that changes nothing stores no response for its key, so a retry gets a new response.
  if (events > 0 && !/Check|Verify/.test(name)) assert.equal(again.text, answer.text, name)
  assert.equal((await world.pinfold.events()).length, events, `${name} has told twice`)
  return answer
}

test('each changing method runs a repeated request once, and returns 412 for a stale ETag', async () => {
  const seen = { subject: 0, none: 0 }
  const others: string[] = []
  await makeCalls(async (sending) => {
    const { endpoint, name, send, token } = sending
    if (isRead(endpoint)) return send()
    // A caller that has deleted its own account can send no second request.
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

test('with If-Match: * a changing method runs if its resource exists, returns 412 if not, and 400 if it has none', async () => {
  const seen = { there: 0, missing: 0, none: 0 }
  await makeCalls(async (sending) => {
    const { endpoint, name, send } = sending
    if (isRead(endpoint) || endpoint.method.access.mode === 'open') return send()
    const subject = subjects.of(endpoint)
    const there = subject && (await etagBefore(sending)) !== undefined
    const answer = await send({ 'if-match': '*' })
    if (there) {
      seen.there++
      assert.equal(answer.status, 200, `${name}: ${answer.text}`)
      return answer
    }
    seen[subject ? 'missing' : 'none']++
    assert.equal(answer.status, subject ? 412 : 400, `${name}: ${answer.text}`)
    // The same request without a condition.
    return send()
  })
  assert.ok(seen.there > 40 && seen.missing > 0 && seen.none > 30, JSON.stringify(seen))
})

/**
 * Output-only fields that change the ETag, by resource. They change when a caller acts, or when the resource is no longer as it
 * was read, such as an expired acceptance. Other fields that change by themselves, such as counters, must not change the ETag.
 */
const lasting: Record<string, string> = {
  Advisory: 'advisoryId deleteTime events.uid events.createTime legacyAdvisoryId',
  ExternalGroupRoleMapping: 'identityProviderUid',
  Follow: 'repoUid upstreamUid path mode tags interval staleFor platforms',
  GateException: 'actor revokeTime revokedBy',
  Group: 'resourceLimits status',
  GroupInvite: 'role role.uid role.name role.description role.capabilities expirationTime link keyId',
  Hold: 'actor releaseTime releasedBy',
  Identity: 'email emailUnverified',
  PullRuleException: 'actor revokeTime revokedBy',
  QuarantinedDigest: 'digest reason actor releaseTime releasedBy',
  Repo: 'syncConfig.uniqueTags syncConfig.expirationTime syncConfig.gracePeriod',
  RetentionPlan:
    'state actor manifests bytes dryRunManifests dryRunBytes truncated deleted left appliedBy undecided expireTime',
  RiskAcceptance: 'actor state endTime revokedBy revokeReason stated',
  RoleBinding: [
    'identity identity.uid identity.name identity.description identity.subject identity.issuer identity.email',
    'group group.uid group.name group.description role role.uid role.name role.description',
  ].join(' '),
  SubscriptionSettings: 'paused pauseReason',
  Upstream: 'hasPassword',
  VexSigner: 'fingerprint actor state endTime revokedBy revokeReason',
}

/** Includes the output-only fields of nested messages. */
function outputOnly(
  { fields }: DescMessage,
  without: readonly string[] = [],
  above: readonly DescMessage[] = [],
): string[] {
  return fields.flatMap((field) => {
    if (without.includes(field.localName)) return []
    const isOutput = getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY)
    const { message } = field
    const inner = message && !above.includes(message) ? outputOnly(message, [], [...above, message]) : []
    return [...(isOutput ? [field.localName] : []), ...inner.map((one) => `${field.localName}.${one}`)]
  })
}

test('this test or the code lists each output-only field, as changed by a write or without a write', () => {
  const resources = new Set(endpoints.flatMap((endpoint) => subjects.of(endpoint)?.resource ?? []))
  const found = [...resources].map((desc) => {
    const always = ['uid', 'createTime', 'updateTime']
    const names = outputOnly(desc, passing.get(desc)).filter((name) => !always.includes(name))
    return [desc.name, names.join(' ')] as const
  })
  assert.deepEqual(Object.fromEntries(found.filter(([, names]) => names !== '')), lasting)
  const stale = [...passing].flatMap(([{ name, fields }, names]) => {
    return names.filter((one) => !fields.some(({ localName }) => localName === one)).map((one) => `${name}.${one}`)
  })
  assert.deepEqual(stale, [], 'pass and are not there')
})
