// Limits on the rules, marks, exemptions and signers of an organization: the last allowed one is created, and the next one is
// refused.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ident, sql } from '#db/sql.ts'
import { mostGates } from '#domains/policy/gates/gates.model.ts'
import { mostRules as mostPullRules } from '#domains/policy/pull-rules/pull-rules.model.ts'
import { mostMarks, mostRules } from '#domains/policy/retention/retention.model.ts'
import { mostOfOne } from '#domains/scanning/risks/risks.model.ts'
import { most as mostSigners } from '#domains/scanning/signers/signers.model.ts'
import { keysOf, pemOf } from '../support/attest.ts'
import { assertError, ok } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
let [org, other] = ['', '']
let owner: Client
before(async () => {
  pinfold = await startPinfold({ clock: () => new Date('2026-03-01T08:00:00.000Z') })
  const { seed } = pinfold
  org = (await seed.group('', { name: 'acme' })).uid
  other = (await seed.group('', { name: 'other' })).uid
  owner = await pinfold.as((await seed.member(org, roleUids.owner)).uid)
})
after(() => pinfold[Symbol.asyncDispose]())

const digestOf = (i: number): string => `sha256:${i.toString(16).padStart(64, '0')}`
const untilTime = '2026-03-20T00:00:00Z'

/** Stores marks in force, one fewer than allowed. */
const plantMarks = (table: string, scope: string) =>
  pinfold.app.db.tx(async (tx) => {
    for (let i = 1; i < mostMarks; i++) {
      await tx.run(sql`
        INSERT INTO ${ident(table)} (uid, group_uid, scope_uid, digest, tags, reason, actor, create_time)
        VALUES (${`${scope}/${i.toString(16).padStart(16, '0')}`}, ${scope}, ${scope}, ${digestOf(i)}, '[]', 'audit',
          ${org}, '2026-03-01T07:00:00.000Z')`)
    }
  })

type Kind = { path: string; most: number; body: (i: number) => Json; verb?: string; table?: string }
const kinds: Record<string, Kind> = {
  'retention rules': {
    path: 'retentionRules',
    most: mostRules,
    body: (i) => ({ name: `r${i}`, keepDaysAfter: 1, mode: 'ENFORCE' }),
  },
  'tag rules': { path: 'tagRules', most: mostRules, body: (i) => ({ name: `t${i}`, tags: ['v*'], immutable: true }) },
  'pull rules': {
    path: 'pullRules',
    most: mostPullRules,
    body: (i) => ({ name: `p${i}`, minAge: '1h', mode: 'DENY', belowGroup: i === 0 ? other : org }),
  },
  gates: {
    path: 'gates',
    most: mostGates,
    body: (i) => ({ name: `g${i}`, vulnerabilities: { leastSeverity: 'HIGH' } }),
  },
  holds: { path: 'holds', most: mostMarks, body: (i) => ({ digest: digestOf(i), reason: 'audit' }), table: 'holds' },
  quarantines: {
    path: 'quarantined',
    most: mostMarks,
    body: (i) => ({ digest: digestOf(i), reason: 'bad' }),
    verb: ':quarantine',
    table: 'quarantined',
  },
}
for (const [what, { path, most, body, verb = '', table }] of Object.entries(kinds)) {
  test(`an organization has at most ${most} ${what}; those of others do not count`, async () => {
    const folders: string[] = []
    for (const name of ['one', 'two']) folders.push((await pinfold.seed.group(org, { name: `${name} ${what}` })).uid)
    const make = (i: number) => owner.post(`/registry/v2/${path}/${folders[i % 2]}${verb}`, body(i))
    if (table) await plantMarks(table, folders[0]!)
    for (let i = table ? most : 1; i <= most; i++) ok(await make(i))
    const refused = await make(most + 1)
    assertError(refused, 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
    const { limit, used } = refused.body.details[0].metadata
    assert.deepEqual([limit, used], [String(most), String(most)])
    const elsewhere = await pinfold.as((await pinfold.seed.member(other, roleUids.owner)).uid)
    ok(await elsewhere.post(`/registry/v2/${path}/${other}${verb}`, body(0)))
  })
}

test(`a risk can be accepted at most ${mostOfOne} times in one scope`, async () => {
  const accept = (vulnerability: string, scope = org) =>
    owner.post(`/registry/v2/riskAcceptances/${scope}`, { vulnerability, reason: 'known', expireTime: untilTime })
  for (let i = 0; i < mostOfOne; i++) ok(await accept('CVE-2026-0001'))
  assertError(await accept('CVE-2026-0001'), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  ok(await accept('CVE-2026-0002'))
})

test('limits the trusted signers of a scope and of an organization', async () => {
  const trust = (scope: string, name: string) => {
    const signer = { name, publicKey: pemOf(keysOf.ed25519!()), reason: 'they build it', expireTime: untilTime }
    return owner.post(`/registry/v2/vexSigners/${scope}`, signer)
  }
  const scopes: string[] = []
  for (let i = 0; i <= mostSigners.organization / mostSigners.scope; i++) {
    scopes.push((await pinfold.seed.group(org, { name: `signers${i}` })).uid)
  }
  const last = scopes.pop()!
  for (const scope of scopes) {
    for (let i = 0; i < mostSigners.scope; i++) {
      ok(await trust(scope, `s${i}`))
      if (scope === scopes[0] && i === mostSigners.scope - 1) {
        assertError(await trust(scope, 'more'), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
      }
    }
  }
  assertError(await trust(last, 'more'), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
})
