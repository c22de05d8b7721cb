// Retention rules, tag rules, holds and quarantines as resources: invalid requests, and the fields that their errors name.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newUid } from '#lib/uid.ts'
import { ok } from '../support/expect.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { digestOf } from '../support/tags.ts'

let pinfold: Pinfold
let org: string
before(async () => {
  pinfold = await startPinfold()
  org = (await pinfold.seed.group()).uid
})
after(() => pinfold[Symbol.asyncDispose]())

type Row = [says: Json, fields: string[]]

const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `v${i}`)

async function assertRefused(path: string, rows: readonly Row[]): Promise<void> {
  for (const [says, fields] of rows) {
    const answer = await pinfold.operator.post(`/registry/v2/${path}`, says)
    const context = `${path} ${JSON.stringify(says).slice(0, 200)}: ${answer.text}`
    assert.deepEqual([answer.status, answer.body.code], [400, 3], context)
    const found = answer.body.details.flatMap(({ fieldViolations = [] }: Json) => fieldViolations)
    assert.deepEqual([...new Set(found.map(({ field }: Json) => field))].sort(), fields, context)
  }
}

test('an empty or invalid rule gets an error for each invalid field', async () => {
  const good = { keepDaysAfter: 1, mode: 'ENFORCE' }
  await assertRefused(`retentionRules/${org}`, [
    [{}, ['keep_days_after', 'mode']],
    [{ mode: 'ENFORCE' }, ['keep_days_after']],
    [{ keepDaysAfter: 1 }, ['mode']],
    [{ ...good, keepDaysAfter: -1 }, ['keep_days_after']],
    [{ ...good, keepDaysAfter: 36_501 }, ['keep_days_after']],
    [{ ...good, keepLast: 1001, untaggedDays: 36_501 }, ['keep_last', 'untagged_days']],
    [{ ...good, tags: many(21) }, ['tags']],
    [{ ...good, exceptTags: many(1001) }, ['except_tags']],
    [{ ...good, name: 'a'.repeat(101) }, ['name']],
  ])
  for (const tags of [['a b'], ['-'.repeat(129)], ['']]) {
    const answer = await pinfold.operator.post(`/registry/v2/retentionRules/${org}`, { ...good, tags })
    assert.deepEqual([answer.status, answer.body.code], [400, 3], answer.text)
    assert.match(answer.text, /"field":"tags/)
  }
  ok(
    await pinfold.operator.post(`/registry/v2/retentionRules/${org}`, {
      ...good,
      keepDaysAfter: 36_500,
      keepLast: 1000,
    }),
  )
})

test('a tag rule requires immutability or a list of allowed identities, with valid uids', async () => {
  await assertRefused(`tagRules/${org}`, [
    [{}, ['immutable']],
    [{ movers: ['somebody'] }, ['movers']],
    [{ movers: Array.from({ length: 101 }, () => 'a'.repeat(40)) }, ['movers']],
    [{ immutable: true, tags: many(21), exceptTags: many(1001) }, ['except_tags', 'tags']],
  ])
})

test('a hold requires a digest or tags, and a reason; a quarantine requires a reason too', async () => {
  const digest = digestOf('held')
  const reason = 'asked for'
  await assertRefused(`holds/${org}`, [
    [{ reason }, ['hold.digest']],
    [{ digest: 'sha256:12', reason }, ['hold.digest']],
    [{ digest, tags: ['v*'], reason }, ['hold.tags']],
    [{ digest }, ['hold.reason']],
    [{ digest, reason: 'a'.repeat(2001) }, ['hold.reason']],
  ])
  await assertRefused(`quarantined/${org}:quarantine`, [
    [{ reason }, ['digest']],
    [{ digest }, ['reason']],
    [{ digest: 'latest', reason: ' ' }, ['digest', 'reason']],
  ])
})

test('returns NOT_FOUND for missing groups, and denies callers without permission to manage the rules', async () => {
  const { operator, seed } = pinfold
  const digest = digestOf('any')
  const bodies: Record<string, Json> = {
    retentionRules: { keepDaysAfter: 1, mode: 'OFF' },
    tagRules: { immutable: true },
    holds: { digest, reason: 'asked for' },
  }
  const viewer = await pinfold.as((await seed.member(org, roleUids.viewer)).uid)
  for (const [path, body] of Object.entries(bodies)) {
    const nowhere = newUid(org)
    assert.equal((await operator.post(`/registry/v2/${path}/${nowhere}`, body)).body.code, 5, path)
    assert.equal((await viewer.post(`/registry/v2/${path}/${org}`, body)).body.code, 7, path)
    const { uid } = ok(await operator.post(`/registry/v2/${path}/${org}`, body))
    assert.deepEqual(Object.values(ok(await viewer.get(`/registry/v2/${path}`)))[0], [], path)
    assert.equal((await viewer.get(`/registry/v2/${path}?scopeUid=${org}`)).body.code, 7, path)
    assert.equal((await operator.get(`/registry/v2/${path}?scopeUid=${nowhere}`)).body.code, 5, path)
    assert.equal((await operator.get(`/registry/v2/${path}?scopeUid=here`)).body.code, 3, path)
    if (path === 'holds') {
      assert.equal((await operator.post(`/registry/v2/holds/${nowhere}:release`, {})).body.code, 5)
      assert.equal((await viewer.post(`/registry/v2/holds/${uid}:release`, {})).body.code, 7)
      continue
    }
    for (const [verb, given] of [
      ['PATCH', body],
      ['DELETE', undefined],
    ] as const) {
      assert.equal(
        (await operator.call(verb, `/registry/v2/${path}/${nowhere}`, given)).body.code,
        5,
        `${verb} ${path}`,
      )
      assert.equal((await viewer.call(verb, `/registry/v2/${path}/${uid}`, given)).body.code, 7, `${verb} ${path}`)
    }
    assert.equal((await operator.get(`/registry/v2/${path}/${nowhere}`)).body.code, 5, path)
  }
})

test('an update changes the named fields and is validated as a whole; an ended hold cannot be changed', async () => {
  const { operator } = pinfold
  const made = ok(
    await operator.post(`/registry/v2/retentionRules/${org}`, { name: 'r', keepLast: 3, mode: 'DRY_RUN' }),
  )
  const path = `/registry/v2/retentionRules/${made.uid}`
  const changed = ok(await operator.patch(path, { keepDaysAfter: 5 }))
  assert.deepEqual(
    [changed.name, changed.keepLast, changed.keepDaysAfter, changed.mode, changed.createTime],
    ['r', 3, 5, 'DRY_RUN', made.createTime],
  )
  ok(await operator.patch(path, { keepDaysAfter: 0 }))
  const nothing = await operator.patch(path, { keepLast: 0 })
  assert.deepEqual([nothing.status, nothing.body.code], [400, 3])
  assert.equal(ok(await operator.get(path)).keepLast, 3, 'nothing was changed')
  const hold = ok(await operator.post(`/registry/v2/holds/${org}`, { tags: ['v*'], reason: 'asked for' }))
  const first = ok(await operator.post(`/registry/v2/holds/${hold.uid}:release`, {}))
  const second = ok(await operator.post(`/registry/v2/holds/${hold.uid}:release`, {}))
  assert.deepEqual(second, first)
  assert.ok(first.releaseTime)
})
