// Commands for deletion plans, for the protection of a manifest, and for deletions that override it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { list, sql } from '#db/sql.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { startRegistry } from '../support/registry.ts'

let registry: Awaited<ReturnType<typeof startRegistry>>
before(async () => {
  registry = await startRegistry({ jobs: [sweepRetention] })
})
after(() => registry[Symbol.asyncDispose]())

const cli = (...args: string[]) =>
  run(args, { env: { PINFOLD_API: registry.url, PINFOLD_TOKEN: registry.operator.token! } })

/** Output of a command that must succeed. */
async function done(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await cli(...args)
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  return { stdout, stderr }
}

test('shows a deletion plan with the reason for each deletion, and applies it on request', async () => {
  const { pusher, operator, org } = registry
  const images = []
  for (let i = 0; i < 3; i++) images.push(await pusher.pushImage('acme/web', 'latest'))
  const [first, second, third] = images
  const nothing = await done('policies', 'retention', 'plans', 'create', 'acme')
  assert.match(nothing.stderr, /no manifests to delete$/m)
  await done('policies', 'retention', 'create', 'one', '--in', 'acme/web', '--keep-last', '1', '--mode', 'dry-run')
  const dry = await done('policies', 'retention', 'plans', 'create', 'acme')
  assert.match(
    dry.stdout,
    new RegExp(`^acme/web +${first!.digest} +not one of the last digests +.* not deleted \\(dry-run\\)$`, 'm'),
  )
  assert.match(dry.stderr, /no manifests to delete; policies in dry-run would delete 2 more/)
  await done('policies', 'retention', 'update', 'one', '--mode', 'enforce')
  const ready = await done('policies', 'retention', 'plans', 'create', 'acme/web')
  const [, uid] = /to delete them: pinfold policies retention plans apply (\S+)$/m.exec(ready.stderr)!
  assert.match(ready.stderr, /2 manifests to delete, [\d.]+ \w+$/m)
  for (const { digest } of [first!, second!]) assert.match(ready.stdout, new RegExp(`${digest} .* to delete$`, 'm'))
  assert.doesNotMatch(ready.stdout, new RegExp(third!.digest))
  const listed = await done('policies', 'retention', 'plans', 'list', '--in', 'acme/web')
  assert.match(listed.stdout, new RegExp(`^${uid} +acme/web +ready +2 +`, 'm'))
  assert.equal(
    (await done('policies', 'retention', 'plans', 'list', '--in', 'acme/web', '-o', 'id')).stdout,
    `${uid}\n`,
  )
  assert.equal(
    JSON.parse((await done('policies', 'retention', 'plans', 'list', '--in', 'acme', '-o', 'json')).stdout).items
      .length,
    2,
  )
  // A scope selects the last plan created for this scope.
  assert.deepEqual((await done('policies', 'retention', 'plans', 'describe', 'acme/web')).stdout, ready.stdout)
  for (const [name, says] of [
    [
      'x',
      /^pinfold: no deletion plan x was found: .*\n(.*\n)*pinfold: to list plans: pinfold policies retention plans list\n/,
    ],
    ['acme/kept', /no folder or repository acme\/kept was found|no deletion plan for acme\/kept was found/],
  ] as const) {
    const missing = await cli('policies', 'retention', 'plans', 'apply', name, '--yes')
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, says)
  }
  const refused = await cli('policies', 'retention', 'plans', 'apply', uid!)
  assert.deepEqual([refused.code, refused.stdout], [64, ''])
  assert.match(refused.stderr, /delete 2 manifests, .*--yes/)
  assert.match(
    (await done('policies', 'retention', 'plans', 'apply', uid!, '--yes')).stdout,
    /^deleted 2 of 2 manifests, and kept 0$/m,
  )
  assert.match(
    (await done('policies', 'retention', 'plans', 'describe', uid!)).stdout,
    new RegExp(`${first!.digest} .* deleted$`, 'm'),
  )
  const again = await cli('policies', 'retention', 'plans', 'apply', uid!, '--yes')
  assert.equal(again.code, 1)
  assert.match(again.stderr, /the plan was already applied/)
  const json = JSON.parse((await done('policies', 'retention', 'plans', 'describe', uid!, '-o', 'json')).stdout)
  assert.deepEqual([json.plan.state, json.items.length], ['APPLIED', 2])
  const { retentionPlans } = ok(await operator.get(`/registry/v2/retentionPlans?scopeUid=${org.uid}`))
  assert.ok(retentionPlans.some((one: Json) => one.uid === uid))
})

test('apply uses the newest plan of exactly the given scope', async () => {
  const { pusher, app, org, operator } = registry
  await pusher.pushImage('acme/several', 'latest')
  await done('policies', 'retention', 'create', 'last', '--in', 'acme/several', '--keep-last', '1', '--mode', 'enforce')
  const made: string[] = []
  const move = (scope: string) =>
    app.db.tx((tx) => tx.run(sql`UPDATE retention_plans SET scope_uid = ${scope} WHERE uid IN (${list(made)})`))
  for (let i = 0; i < 4; i++) {
    await pusher.pushImage('acme/several', 'latest')
    const planned = await done('policies', 'retention', 'plans', 'create', 'acme/several')
    made.push(/to delete them: pinfold policies retention plans apply (\S+)$/m.exec(planned.stderr)![1]!)
    // A running plan is not replaced by a plan that is created meanwhile.
    await move(org.uid)
  }
  await move(made[0]!.slice(0, made[0]!.lastIndexOf('/')))
  await done('policies', 'retention', 'plans', 'create', 'acme')
  const listed = (await done('policies', 'retention', 'plans', 'list', '--in', 'acme/several', '-o', 'id')).stdout
    .trim()
    .split('\n')
  assert.deepEqual(listed.toSorted(), made.toSorted())
  assert.match(
    (await done('policies', 'retention', 'plans', 'apply', 'acme/several', '--yes')).stdout,
    /^deleted 4 of 4 manifests, and kept 0$/m,
  )
  const { retentionPlans } = ok(await operator.get(`/registry/v2/retentionPlans?scopeUid=${org.uid}`))
  const applied = retentionPlans.filter(({ state, manifests }: Json) => state === 'APPLIED' && manifests === '4')
  assert.deepEqual(
    applied.map(({ uid }: Json) => uid),
    [made.at(-1)],
  )
  // A newer plan of a lower scope is not used for the folder.
  await done('policies', 'retention', 'plans', 'create', 'acme')
  await pusher.pushImage('acme/several', 'latest')
  await done('policies', 'retention', 'plans', 'create', 'acme/several')
  assert.match(
    (await done('policies', 'retention', 'plans', 'apply', 'acme', '--yes')).stdout,
    /^deleted 0 of 0 manifests, and kept 0$/m,
  )
})

test('shows the protection of a tag or a digest, and deletes a protected manifest with a reason', async () => {
  const { pusher } = registry
  const old = await pusher.pushImage('acme/kept', 'v1')
  await pusher.pushImage('acme/kept', 'v1')
  assert.match((await done('images', 'protection', `acme/kept@${old.digest}`)).stdout, /^protected by +nothing$/m)
  const tagged = (await done('images', 'protection', 'acme/kept:v1')).stdout
  assert.match(tagged, /^protected by +tags only: deletion plans skip manifests with tags, .*\ntags +v1\n$/m)
  await done('policies', 'retention', 'create', 'long', '--in', 'acme/kept', '--forever', '--mode', 'enforce')
  const said = (await done('images', 'protection', `acme/kept@${old.digest}`)).stdout
  assert.match(said, /^protected by +the date that a retention policy guarantees$/m)
  assert.match(said, /^until +no end date$/m)
  assert.match((await done('images', 'protection', 'acme/kept:v1')).stdout, /^tags +v1$/m)
  for (const [name, code, says] of [
    ['acme/kept', 64, /with its tag or digest/],
    ['acme/kept:none', 1, /has no tag none/],
    ['acme/kept@sha256:12', 64, /is not a valid digest/],
    ['acme/none:v1', 1, /no image acme\/none was found/],
  ] as const) {
    const answer = await cli('images', 'protection', name)
    assert.deepEqual([answer.code, answer.stdout], [code, ''], name)
    assert.match(answer.stderr, says)
  }
  const breaking = ['images', 'force-delete', `acme/kept@${old.digest}`, '--yes']
  const unsaid = await cli(...breaking)
  assert.equal(unsaid.code, 64)
  assert.match(unsaid.stderr, /--reason/)
  assert.match((await cli(...breaking, '--reason', ' ')).stderr, /reason: is required/)
  const told = await cli('images', 'force-delete', `acme/kept@${old.digest}`, '--reason', 'a secret')
  assert.match(told.stderr, new RegExp(`delete ${old.digest} of acme/kept.*--yes`))
  await done(...breaking, '--reason', 'a secret')
  assert.equal((await pusher.call('GET', `acme/kept/manifests/${old.digest}`)).status, 404)
  await done('images', 'force-delete', 'acme/kept', '--reason', 'all of it', '--yes')
  assert.match((await cli('images', 'protection', 'acme/kept:v1')).stderr, /no image acme\/kept was found/)
})
