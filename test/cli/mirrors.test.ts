// Commands for upstreams and mirrors.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { addReported } from '#domains/registry/tags/upstream-history.store.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { type Json, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { digestOf, registryClient } from '../support/registry.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

async function scene(settings: Parameters<typeof startPinfold>[0] = {}) {
  const pinfold = await startPinfold(settings)
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  await pinfold.seed.repo(org, { name: 'alpine' })
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(args, { env })
  const done = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    return stdout
  }
  await done('mirrors', 'upstreams', 'create', 'hub', '--in', 'acme', '--url', 'https://registry.example.com')
  return { pinfold, cli, done }
}

const following = ['mirrors', 'create', 'acme/alpine', '--upstream', 'hub', '--path', 'alpine']

test('an error for an upstream at a forbidden address names the setting to allow it', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  for (const [url, says] of [
    [
      'http://registry.example.com',
      /must be an https URL, unless the operator sets PINFOLD_ALLOW_INSECURE_UPSTREAMS=on/,
    ],
    [
      'https://10.1.2.3',
      /must not be a private or loopback address, unless the operator lists it in PINFOLD_UPSTREAMS_PRIVATE/,
    ],
  ] as const) {
    const refused = await cli('mirrors', 'upstreams', 'create', 'other', '--in', 'acme', '--url', url)
    assert.deepEqual([refused.code, refused.stdout], [1, ''])
    assert.match(refused.stderr, says)
  }
})

test('an upstream option allows or forbids creation of repositories', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  const makes = async () =>
    JSON.parse(await done('mirrors', 'upstreams', 'describe', 'hub', '-o', 'json')).makeRepos ?? false
  assert.equal(await makes(), false)
  for (const [given, expected] of [
    ['yes', true],
    ['no', false],
  ] as const) {
    await done('mirrors', 'upstreams', 'update', 'hub', '--make-repos', given)
    assert.equal(await makes(), expected)
  }
  const refused = await cli('mirrors', 'upstreams', 'update', 'hub', '--make-repos', 'maybe')
  assert.equal(refused.code, 64)
  assert.match(refused.stderr, /--make-repos must be yes or no/)
})

test('shows a mirror by the name of its upstream, with times in the units of the options', async () => {
  const { pinfold, done } = await scene()
  await using _ = pinfold
  for (const interval of ['30m', '12h', '1d']) {
    const shown = await done(...following, '--interval', interval)
    assert.match(shown, /^upstream +acme\/hub$/m)
    assert.match(shown, new RegExp(`^interval +${interval}$`, 'm'))
  }
  const json = JSON.parse(await done('mirrors', 'create', 'acme/alpine', '-o', 'json'))
  assert.deepEqual(
    [json.interval, json.upstreamUid.length > 40],
    ['86400s', true],
    'programs are given what the API has',
  )
})

test('for a repository that is not a mirror, prints the command to make it one', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  const nothing = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli('mirrors', ...args)
    assert.deepEqual([code, stdout], [1, ''], args.join(' '))
    assert.match(
      stderr,
      /^pinfold: acme\/alpine is not a mirror\npinfold: .*pinfold mirrors create acme\/alpine --upstream NAME --path PATH/,
    )
  }
  await nothing('create', 'acme/alpine')
  await nothing('create', 'acme/alpine', '--check')
  await nothing('delete', 'acme/alpine', '--yes')
  await done(...following)
  await done('mirrors', 'delete', 'acme/alpine', '--yes')
  await nothing('delete', 'acme/alpine', '--yes')
})

test('can copy content ahead, and the error for a protected tag names the tag', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  assert.match(await done(...following, '--mode', 'full'), /^mode +full$/m)
  await done('mirrors', 'delete', 'acme/alpine', '--yes')
  const org = (await pinfold.operator.get('/iam/v2/groups?name=acme')).body.groups[0].uid as string
  const token = await pinfold.tokenFor(operatorUid, { audience: new URL(pinfold.url).host })
  await registryClient(`http://127.0.0.1:${pinfold.port}`, token).pushImage('acme/alpine', 'v1')
  const rule = await pinfold.operator.post(`/registry/v2/tagRules/${org}`, { tags: ['v*'], immutable: true })
  const { code, stderr } = await cli(...following)
  assert.equal(code, 1)
  assert.match(stderr, /cannot become a mirror, because \S+ protects its tag v1;/)
  assert.ok(stderr.includes(rule.body.uid))
})

test('refuses to delete an upstream with mirrors, and prints the command that lists them', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  await done(...following)
  const refused = await cli('mirrors', 'upstreams', 'delete', 'hub', '--yes')
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  const [, group = ''] = /\npinfold: pinfold mirrors list --in (\S+) lists its mirrors\n$/.exec(refused.stderr) ?? []
  assert.match(await done('mirrors', 'list', '--in', group), /^acme\/alpine +watch +alpine/m)
  await done('mirrors', 'delete', 'acme/alpine', '--yes')
  await done('mirrors', 'upstreams', 'delete', 'hub', '--yes')
  await done('mirrors', 'upstreams', 'delete', 'hub', '--yes', '--allow-missing')
})

test('shows a tag update between two checks, and the first check as such, like the API', async () => {
  let shift = 0
  const { pinfold, done } = await scene({ ...localUpstreams, monotonic: () => performance.now() * 1000 + shift })
  await using _ = pinfold
  await using there = await startUpstream()
  const iso = () => new Date(Date.now() + shift).toISOString()
  const look = async (afterMinutes = 0) => {
    shift += afterMinutes * 60_000
    const began = iso()
    await runJob({ ...pinfold.app, clock: () => new Date(Date.now() + shift) }, followUpstreams)
    return { began, ended: iso() }
  }
  const one = there.move('3', 'one')
  await done('mirrors', 'upstreams', 'create', 'near', '--in', 'acme', '--url', there.url)
  await done('mirrors', 'create', 'acme/alpine', '--upstream', 'near', '--path', 'alpine', '--interval', '30m')
  const looks = [await look(), await look(31)]
  const two = there.move('3', 'two')
  looks.push(await look(31))
  there.tags.delete('3')
  for (let i = 0; i < 3; i++) looks.push(await look(31))

  const shown = await done('tags', 'history', 'acme/alpine:3')
  const [head, ...rows] = shown.trimEnd().split('\n')
  assert.match(head!, /^TIME +EVENT +DIGEST +BY$/)
  const [gone, moved, created] = rows.map((row) => row.split(/ {2,}/))
  const by = ([, , , text]: string[] = []) => /^upstream, after (\S+Z)$/.exec(text!)?.[1]
  assert.deepEqual(
    [gone, moved, created].map((row) => row?.slice(1, 3)),
    [
      ['deleted', two],
      ['moved', two],
      ['created', one],
    ],
  )
  assert.equal(created![3], 'upstream, first check')
  const isOf = (time: string | undefined, at: number) => {
    const { began, ended } = looks[at]!
    assert.ok(time !== undefined && time >= began && time <= ended, `${time} is not from ${began} to ${ended}`)
  }
  for (const [time, at] of [
    [created![0], 0],
    [by(moved), 1],
    [moved![0], 2],
    [by(gone), 2],
    [gone![0], 5],
  ] as const) {
    isOf(time, at)
  }
  const [uid] = (await pinfold.operator.get('/registry/v2/repos?name=alpine')).body.repos.map(({ uid }: Json) => uid)
  const answer = await pinfold.operator.get(`/registry/v2/repos/${uid}/tagHistory?tag=3`)
  const json = JSON.parse(await done('tags', 'history', 'acme/alpine:3', '-o', 'json'))
  assert.deepEqual(json, answer.body.records)
  assert.deepEqual(
    answer.body.records.map((record: Json) => [record.source, record.time, record.checkedBefore]),
    [gone, moved, created].map((row) => ['SOURCE_UPSTREAM', row![0], by(row)]),
  )
})

test('shows tag history from an upstream only on request, with its origin', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  await done(...following)
  const { db } = pinfold.app
  const [uid] = (await pinfold.operator.get('/registry/v2/repos?name=alpine')).body.repos.map((one: Json) => one.uid)
  const { ledger } = (await findRepoRow(db, { uid }))!
  const teller = { ledger, upstream: 'u', origin: 'https://registry.example.com', path: 'alpine' }
  const [digest, next] = [digestOf('then'), digestOf('later')]
  const [first, second] = ['2026-05-01T10:00:00.000Z', '2026-05-02T10:00:00.000Z']
  const moves = [
    { time: first, digest, isDeletion: false, checkedBefore: '' },
    { time: second, digest: next, isDeletion: false, checkedBefore: first },
  ]
  assert.equal(await db.tx((tx) => addReported(tx, teller, '3', moves, second)), 2)
  const rows = (await done('tags', 'history', 'acme/alpine:3', '--told')).trim().split('\n')
  assert.match(
    rows[1]!,
    new RegExp(`^${second} +moved +${next} +reported by https://registry.example.com/alpine, after ${first}$`),
  )
  assert.match(rows[2]!, new RegExp(`^${first} +created +${digest} +reported by https://registry.example.com/alpine$`))
  const then = await done('tags', 'history', 'acme/alpine:3', '--told', '--as-of', '2026-05-01T12:00:00Z', '-o', 'json')
  assert.deepEqual(
    JSON.parse(then).map((one: Json) => [one.digest, one.endTime]),
    [[digest, second]],
  )
  const seen = await cli('tags', 'history', 'acme/alpine:3', '--as-of', '2026-05-01T12:00:00Z')
  assert.deepEqual([seen.code, seen.stdout], [1, ''])
  assert.match(seen.stderr, /had no tag 3 .*\n.*--told shows the history that its upstream reports/)
  const nothing = await cli('tags', 'history', 'acme/alpine:4', '--told')
  assert.equal(nothing.code, 1)
  assert.match(
    nothing.stderr,
    /the upstream of acme\/alpine has reported no such history\n.*pinfold mirrors create acme\/alpine/,
  )
})
