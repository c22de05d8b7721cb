// Deletion of a group follows the declarations in the rows of the resources.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { addToLists, removeFromLists } from '#db/listing.ts'
import { ident, sql } from '#db/sql.ts'
import { putRequest } from '#domains/iam/access-requests/access-requests.store.ts'
import { contentNames } from '#domains/iam/groups/groups.service.ts'
import { newUid } from '#lib/uid.ts'
import { resources } from '../../src/resources.ts'
import { keysOf, pemOf } from '../support/attest.ts'
import { assertBlocked, ok } from '../support/expect.ts'
import { type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

const document = { id: 'terms.v1', label: 'Terms', url: 'https://example.com/terms' }

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold({ termsDocuments: [document] })
})
after(() => pinfold[Symbol.asyncDispose]())

test('only the declared rows block the deletion of a group, in the group and below', async () => {
  const { app, operator, seed } = pinfold
  for (const { kinds, groupDeletion, table } of resources) {
    for (const kind of kinds) {
      const { uid: group } = await seed.group()
      const uid = newUid(newUid(group))
      await app.db.tx((tx) => addToLists(tx, kind, uid, 1, {}))
      const answer = await operator.delete(`/iam/v2/groups/${group}`)
      await app.db.tx((tx) => removeFromLists(tx, kind, uid, {}))
      if (groupDeletion !== 'blocks') assert.equal(answer.status, 200, `${table}: ${answer.text}`)
      else {
        assertBlocked(answer, group, 'RESOURCE_NOT_EMPTY')
        const name = contentNames[table] ?? table.replaceAll('_', ' ')
        assert.ok(answer.body.details[1].violations[0].description.includes(name), answer.text)
        ok(await operator.delete(`/iam/v2/groups/${group}`))
      }
    }
  }
})

const later = '2100-01-01T00:00:00.000Z'

test('deletes the rows that belong to a group together with the group', async () => {
  const { app, operator, seed } = pinfold
  const { uid: group } = await seed.group()
  const { uid: kept } = await seed.group()
  const digest = `sha256:${'0'.repeat(64)}`
  const post = async (path: string, body: object) => ok(await operator.post(`/registry/v2/${path}`, body))
  const plant: Record<string, (group: string) => Promise<unknown>> = {
    role_bindings: (where) => seed.binding(where, '0'.repeat(40), roleUids.viewer),
    group_invites: (where) => seed.invite(where, roleUids.viewer),
    email_domains: (where) => operator.post(`/control/v1/emailDomains/${where}`, { domain: 'acme.example' }),
    push_tokens: (where) => operator.post(`/control/v1/pushTokens/${where}`, { name: 'laptop' }),
    access_requests: async (where) => {
      const { uid: identityUid } = await seed.person()
      const times = { createTime: later, askTime: later, expireTime: later }
      const request = { uid: newUid(where), identityUid, name: '', email: '', state: 'waiting' as const, ...times }
      await app.db.tx((tx) => putRequest(tx, request))
    },
    terms_acceptances: (where) => operator.post(`/iam/v2/terms/${where}`, { documentIds: [document.id] }),
    pull_rules: (where) =>
      post(`pullRules/${where}`, { name: 'a week', belowGroup: where, minAge: '7d', mode: 'DENY' }),
    pull_rule_exceptions: (where) => {
      const expireTime = new Date(Date.now() + 86_400_000).toISOString()
      return post(`pullRuleExceptions/${where}`, { digest, reason: 'mends it', expireTime })
    },
    retention_rules: (where) => post(`retentionRules/${where}`, { name: 'kept', keepDaysAfter: 30, mode: 'ENFORCE' }),
    tag_rules: (where) => post(`tagRules/${where}`, { name: 'fixed', tags: ['v.*'], immutable: true }),
    retention_plans: (where) => post(`retentionPlans/${where}`, {}),
    risk_acceptances: (where) => {
      const expireTime = new Date(Date.now() + 86_400_000).toISOString()
      const risk = { vulnerability: 'CVE-2026-1', reason: 'known', expireTime }
      return operator.post(`/registry/v2/riskAcceptances/${where}`, risk)
    },
    vex_signers: (where) => {
      const expireTime = new Date(Date.now() + 86_400_000).toISOString()
      return post(`vexSigners/${where}`, { name: 'Acme', publicKey: pemOf(keysOf.ecdsa!()), expireTime })
    },
    gates: (where) => post(`gates/${where}`, { name: 'a-week', cooldown: { minAgeDays: 7 } }),
    gate_exceptions: (where) => {
      const expireTime = new Date(Date.now() + 86_400_000).toISOString()
      return post(`gateExceptions/${where}`, { digest, reason: 'mends it', expireTime })
    },
  }
  const byRule = ['pull_rules', 'pull_rule_exceptions', 'gates', 'gate_exceptions']
  const byGroup = [...byRule, 'retention_rules', 'tag_rules', 'retention_plans']
  const goes = resources.filter(({ groupDeletion }) => groupDeletion === 'goes').map(({ table }) => table)
  assert.deepEqual(goes.toSorted(), Object.keys(plant).sort())
  for (const one of Object.values(plant)) await Promise.all([one(group), one(kept)])
  ok(await operator.delete(`/iam/v2/groups/${group}`))
  for (const table of goes) {
    const column = ident(
      ['terms_acceptances', 'risk_acceptances', 'vex_signers', ...byGroup].includes(table) ? 'group_uid' : 'parent_uid',
    )
    const rows = await app.db.all<{ group: string }>(sql`SELECT ${column} AS "group" FROM ${ident(table)}`)
    assert.deepEqual(rows, [{ group: kept }], table)
  }
})

test('a hold and a quarantine block deletion of a group until released, and are then deleted with it', async () => {
  const { app, operator, seed } = pinfold
  const digest = `sha256:${'0'.repeat(64)}`
  const made: Record<string, (where: string) => Promise<string>> = {
    holds: async (where) => ok(await operator.post(`/registry/v2/holds/${where}`, { digest, reason: 'asked for' })).uid,
    quarantined: async (where) =>
      ok(await operator.post(`/registry/v2/quarantined/${where}:quarantine`, { digest, reason: 'it mines coins' })).uid,
  }
  const released = resources.filter(({ groupDeletion }) => groupDeletion === 'released').map(({ table }) => table)
  assert.deepEqual(released, Object.keys(made))
  for (const [table, make] of Object.entries(made)) {
    const { uid: group } = await seed.group()
    const repo = await seed.repo(group)
    const [above, there] = [await make(group), await make(repo.uid)]
    ok(await operator.delete(`/registry/v2/repos/${repo.uid}`))
    const refused = await operator.delete(`/iam/v2/groups/${group}`)
    assertBlocked(refused, group, 'RESOURCE_NOT_EMPTY')
    const { description } = refused.body.details[1].violations[0]
    for (const uid of [above, there]) assert.ok(description.includes(uid), description)
    ok(await operator.post(`/registry/v2/${table}/${above}:release`, {}))
    assertBlocked(await operator.delete(`/iam/v2/groups/${group}`), group, 'RESOURCE_NOT_EMPTY')
    ok(await operator.post(`/registry/v2/${table}/${there}:release`, {}))
    ok(await operator.delete(`/iam/v2/groups/${group}`))
    const left = await app.db.all(sql`SELECT uid FROM ${ident(table)} WHERE group_uid = ${group}`)
    assert.deepEqual(left, [], table)
  }
})
