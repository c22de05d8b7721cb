// Commands for retention plans, for reasons that protect a manifest, and for breaking a retention guarantee.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { list, sql } from '#db/sql.ts'
import { sweepRetention } from '#domains/policy/retention/plans.duty.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { startRegistry } from '../support/registry.ts'

let registry: Awaited<ReturnType<typeof startRegistry>>
before(async () => {
  registry = await startRegistry({ duties: [sweepRetention] })
})
after(() => registry[Symbol.asyncDispose]())

const cli = (...args: string[]) =>
  run(['images', ...args], { env: { PINFOLD_API: registry.url, PINFOLD_TOKEN: registry.operator.token! } })

/** Output of a command that must succeed. */
async function done(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await cli(...args)
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  return { stdout, stderr }
}

test('a plan is shown with the reason for each deletion, and applied on request', async () => {
  const { pusher, operator, org } = registry
  const images = []
  for (let i = 0; i < 3; i++) images.push(await pusher.pushImage('acme/web', 'latest'))
  const [first, second, third] = images
  const nothing = await done('retention', 'plan', 'acme')
  assert.match(nothing.stderr, /nothing goes$/m)
  await done('retention', 'create', 'one', '--parent', 'acme/web', '--keep-last', '1', '--mode', 'dry-run')
  const dry = await done('retention', 'plan', 'acme')
  assert.match(dry.stdout, new RegExp(`^acme/web +${first!.digest} +none of the last +.* would go$`, 'm'))
  assert.match(dry.stderr, /nothing goes; rules in dry-run would let go 2 more/)
  await done('retention', 'update', 'one', '--mode', 'enforce')
  const ready = await done('retention', 'plan', 'acme/web')
  const [, uid] = /pinfold images retention apply (\S+) deletes them/.exec(ready.stderr)!
  assert.match(ready.stderr, /2 manifests go, [\d.]+ \w+$/m)
  for (const { digest } of [first!, second!]) assert.match(ready.stdout, new RegExp(`${digest} .* goes$`, 'm'))
  assert.doesNotMatch(ready.stdout, new RegExp(third!.digest))
  const listed = await done('retention', 'plans', 'acme/web')
  assert.match(listed.stdout, new RegExp(`^${uid} +acme/web +ready +2 +`, 'm'))
  assert.equal((await done('retention', 'plans', 'acme/web', '-o', 'id')).stdout, `${uid}\n`)
  assert.equal(JSON.parse((await done('retention', 'plans', 'acme', '-o', 'json')).stdout).items.length, 2)
  // A place stands for the last plan that was made for it.
  assert.deepEqual((await done('retention', 'deletions', 'acme/web')).stdout, ready.stdout)
  for (const [name, says] of [
    [
      'x',
      /^pinfold: x is no plan: there is no organisation x .*\n(.*\n)*pinfold: pinfold images retention plans lists them/,
    ],
    ['acme/kept', /there is no folder or repository acme\/kept|there is no plan for acme\/kept/],
  ] as const) {
    const missing = await cli('retention', 'apply', name, '--yes')
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, says)
  }
  const refused = await cli('retention', 'apply', uid!)
  assert.deepEqual([refused.code, refused.stdout], [64, ''])
  assert.match(refused.stderr, /this would delete 2 manifests, .*--yes does it/)
  assert.match((await done('retention', 'apply', uid!, '--yes')).stdout, /^deleted 2 of 2, and left 0$/m)
  assert.match((await done('retention', 'deletions', uid!)).stdout, new RegExp(`${first!.digest} .* deleted$`, 'm'))
  const again = await cli('retention', 'apply', uid!, '--yes')
  assert.equal(again.code, 1)
  assert.match(again.stderr, /the plan was already applied/)
  const json = JSON.parse((await done('retention', 'deletions', uid!, '-o', 'json')).stdout)
  assert.deepEqual([json.plan.state, json.items.length], ['APPLIED', 2])
  const { retentionPlans } = ok(await operator.get(`/registry/v2/retentionPlans?scopeUid=${org.uid}`))
  assert.ok(retentionPlans.some((one: Json) => one.uid === uid))
})

test('apply by place uses the newest plan of exactly that place', async () => {
  const { pusher, app, org, operator } = registry
  await pusher.pushImage('acme/several', 'latest')
  await done('retention', 'create', 'last', '--parent', 'acme/several', '--keep-last', '1', '--mode', 'enforce')
  const made: string[] = []
  const move = (scope: string) =>
    app.db.tx((tx) => tx.run(sql`UPDATE retention_plans SET scope_uid = ${scope} WHERE uid IN (${list(made)})`))
  for (let i = 0; i < 4; i++) {
    await pusher.pushImage('acme/several', 'latest')
    const planned = await done('retention', 'plan', 'acme/several')
    made.push(/pinfold images retention apply (\S+) deletes them/.exec(planned.stderr)![1]!)
    // A plan that is at work while another is made is not replaced by it.
    await move(org.uid)
  }
  await move(made[0]!.slice(0, made[0]!.lastIndexOf('/')))
  await done('retention', 'plan', 'acme')
  const listed = (await done('retention', 'plans', 'acme/several', '-o', 'id')).stdout.trim().split('\n')
  assert.deepEqual(listed.toSorted(), made.toSorted())
  assert.match((await done('retention', 'apply', 'acme/several', '--yes')).stdout, /^deleted 4 of 4, and left 0$/m)
  const { retentionPlans } = ok(await operator.get(`/registry/v2/retentionPlans?scopeUid=${org.uid}`))
  const applied = retentionPlans.filter(({ state, manifests }: Json) => state === 'APPLIED' && manifests === '4')
  assert.deepEqual(
    applied.map(({ uid }: Json) => uid),
    [made.at(-1)],
  )
  // A newer plan of a place below is not that of the folder.
  await done('retention', 'plan', 'acme')
  await pusher.pushImage('acme/several', 'latest')
  await done('retention', 'plan', 'acme/several')
  assert.match((await done('retention', 'apply', 'acme', '--yes')).stdout, /^deleted 0 of 0, and left 0$/m)
})

test('shows what protects a tag or a digest, and breaks a retention guarantee with a reason', async () => {
  const { pusher } = registry
  const old = await pusher.pushImage('acme/kept', 'v1')
  await pusher.pushImage('acme/kept', 'v1')
  assert.match((await done('kept', `acme/kept@${old.digest}`)).stdout, /^kept by +nothing$/m)
  const tagged = (await done('kept', 'acme/kept:v1')).stdout
  assert.match(tagged, /^kept by +nothing but its tags: no plan deletes it, whoever may delete it can\ntags +v1\n$/m)
  await done('retention', 'create', 'long', '--parent', 'acme/kept', '--forever', '--mode', 'enforce')
  const said = (await done('kept', `acme/kept@${old.digest}`)).stdout
  assert.match(said, /^kept by +its date$/m)
  assert.match(said, /^until +without an end$/m)
  assert.match((await done('kept', 'acme/kept:v1')).stdout, /^tags +v1$/m)
  for (const [name, code, says] of [
    ['acme/kept', 64, /by its tag or its digest/],
    ['acme/kept:none', 1, /has no tag none/],
    ['acme/kept@sha256:12', 64, /is no digest/],
    ['acme/none:v1', 1, /there is no image acme\/none/],
  ] as const) {
    const answer = await cli('kept', name)
    assert.deepEqual([answer.code, answer.stdout], [code, ''], name)
    assert.match(answer.stderr, says)
  }
  const breaking = ['break-promises', `acme/kept@${old.digest}`, '--yes']
  const unsaid = await cli(...breaking)
  assert.equal(unsaid.code, 64)
  assert.match(unsaid.stderr, /--reason/)
  assert.match((await cli(...breaking, '--reason', ' ')).stderr, /reason: is required/)
  const told = await cli('break-promises', `acme/kept@${old.digest}`, '--reason', 'a secret')
  assert.match(told.stderr, new RegExp(`this would delete ${old.digest} of acme/kept.*--yes does it`))
  await done(...breaking, '--reason', 'a secret')
  assert.equal((await pusher.call('GET', `acme/kept/manifests/${old.digest}`)).status, 404)
  await done('break-promises', 'acme/kept', '--reason', 'all of it', '--yes')
  assert.match((await cli('kept', 'acme/kept:v1')).stderr, /there is no image acme\/kept/)
})
