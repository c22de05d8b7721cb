// Deletion of rules and admission policies, and end of exemptions, together with their repository.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ok } from '../support/expect.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'

const now = '2026-03-01T08:00:00.000Z'
const digest = `sha256:${'1'.repeat(64)}`
const exception = { digest, reason: 'known', expireTime: '2026-03-20T00:00:00Z' }
let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold({ clock: () => new Date(now) })
})
after(() => pinfold[Symbol.asyncDispose]())

/** Creates one rule of each kind on the repository or group. */
async function say(scope: string): Promise<void> {
  const { operator } = pinfold
  const bodies: Record<string, Json> = {
    gates: { name: 'gate', vulnerabilities: { leastSeverity: 'HIGH' } },
    gateExceptions: exception,
    pullRules: { identities: ['1'.repeat(40)], minAge: '7d', mode: 'DENY' },
    pullRuleExceptions: exception,
    retentionRules: { name: 'rule', tags: ['v*'], keepDaysAfter: 3, mode: 'DRY_RUN' },
    tagRules: { name: 'tags', tags: ['v*'], immutable: true },
  }
  for (const [path, body] of Object.entries(bodies)) ok(await operator.post(`/registry/v2/${path}/${scope}`, body))
}

async function listed(org: string): Promise<Json> {
  const { operator } = pinfold
  const members = ['gates', 'gateExceptions', 'pullRules', 'pullRuleExceptions', 'retentionRules', 'tagRules']
  const found: Json = {}
  for (const member of members) {
    const ended = member.endsWith('Exceptions') ? '&includeEnded=true' : ''
    const rows: Json[] = ok(await operator.get(`/registry/v2/${member}?scopeUid=${org}${ended}`))[member]
    found[member] = rows.map((one) => one.revokeTime ?? '')
  }
  return found
}

test('deleting a repository deletes its rules and admission policies, and ends its exemptions', async () => {
  const { seed, operator } = pinfold
  const org = (await seed.group('', { name: 'acme' })).uid as string
  const repo = (await seed.repo(org, { name: 'app' })).uid as string
  const other = (await seed.repo(org, { name: 'other' })).uid as string
  for (const scope of [org, repo, other]) await say(scope)
  assert.equal((await listed(org)).gates.length, 3)
  ok(await operator.delete(`/registry/v2/repos/${repo}`))
  const left = await listed(org)
  for (const [name, rows] of Object.entries(left)) {
    assert.equal(rows.length, name.endsWith('Exceptions') ? 3 : 2, name)
    if (name.endsWith('Exceptions')) assert.deepEqual(rows.sort(), ['', '', now], name)
  }
  // A new repository of the same name has none of them, and the scope of the former one cannot be queried.
  const again = (await seed.repo(org, { name: 'app' })).uid as string
  assert.deepEqual((await operator.get(`/registry/v2/gates?scopeUid=${again}`)).body.gates ?? [], [])
  assert.equal((await operator.get(`/registry/v2/gates?scopeUid=${repo}`)).status, 404)
})
