import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { operatorUid } from '#issuer/access-token.ts'
import { ok } from '../support/expect.ts'
import { pushSbom } from '../support/images.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { createStorage, run, startInProcess, tokenOf } from '../support/process.ts'
import { startRegistry } from '../support/registry.ts'
import { digestOf, plantTag } from '../support/tags.ts'

const start = Date.parse('2026-05-01T10:00:00.000Z')
const minute = (i: number): string => new Date(start + i * 60_000).toISOString()

/** `acme/team/app`. Its tag latest had the images x, y and x again, one minute each; its tag 1.0 has x. */
async function plantImage(pinfold: Pinfold, at: (i: number) => void) {
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const team = (await pinfold.seed.group(org, { name: 'team' })).uid
  const repo = (await pinfold.seed.repo(team, { name: 'app', description: 'The shop' })).uid
  await pinfold.seed.repo(org, { name: 'app', description: 'Another' })
  for (const [i, [tag, image]] of [
    ['latest', 'x'],
    ['latest', 'y'],
    ['latest', 'x'],
    ['1.0', 'x'],
    ['1.0-r0', 'x'],
  ].entries()) {
    at(i)
    await plantTag(pinfold, repo, tag!, image)
  }
  return { org, team, repo }
}

async function scene() {
  let now = start
  const pinfold = await startPinfold({ clock: () => new Date(now) })
  const planted = await plantImage(pinfold, (i) => {
    now = start + i * 60_000
  })
  const reader = await pinfold.seed.member(planted.team, roleUids.viewer)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(reader.uid) }
  const cli = (...args: string[]) => run(args, { env })
  return { pinfold, ...planted, host: new URL(pinfold.url).host, cli, env }
}

const rowsOf = (stdout: string): string[][] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

test('images list shows the visible images, by the names for pulling them', async () => {
  const { pinfold, org, host, cli, env, repo } = await scene()
  await using _ = pinfold
  const seen = await cli('images', 'list')
  const hidden = org.slice(org.lastIndexOf('/') + 1)
  assert.deepEqual(rowsOf(seen.stdout), [
    ['IMAGE', 'UPDATED', 'ABOUT'],
    [`${host}/${hidden}/team/app`, minute(0), 'The shop'],
  ])
  const all = await run(['images', 'list', '-o', 'json'], { env: { ...env, PINFOLD_TOKEN: pinfold.operator.token! } })
  const { items } = JSON.parse(all.stdout)
  assert.deepEqual(
    items.map(({ image, uid }: Json) => [image, uid === repo]),
    [
      [`${host}/acme/app`, false],
      [`${host}/acme/team/app`, true],
    ],
  )
  const none = await run(['images', 'list'], { env: { PINFOLD_API: pinfold.url } })
  assert.deepEqual([none.code, none.stdout], [77, ''])
})

test('tags list shows the latest first, and hides excluded tags', async () => {
  const { pinfold, repo, env } = await scene()
  await using _ = pinfold
  const cli = (...args: string[]) => run(['tags', ...args], { env: { ...env, PINFOLD_TOKEN: pinfold.operator.token! } })
  const x = digestOf('x')
  assert.deepEqual(rowsOf((await cli('acme/team/app')).stdout), [
    ['TAG', 'DIGEST', 'UPDATED'],
    ['1.0', x, minute(3)],
    ['latest', x, minute(2)],
  ])
  const { items } = JSON.parse((await cli(repo, '--show-epochs', '-o', 'json')).stdout)
  assert.deepEqual(
    items.map(({ name }: Json) => name),
    ['1.0-r0', '1.0', 'latest'],
  )
  assert.deepEqual(rowsOf((await cli('acme/team/app', '--digest', digestOf('y'))).stdout), [
    ['TAG', 'DIGEST', 'UPDATED'],
  ])
  const some = await cli('acme/team/app', '--limit', '1')
  assert.equal(rowsOf(some.stdout).length, 2)
  assert.match(some.stderr, /the list has more items/)
  assert.deepEqual(rowsOf((await cli('acme/team/app', '--updated-within', '1m')).stdout).length, 1)
})

test('tags history shows the history of a tag, a point in time, and the tags of a digest', async () => {
  // A caller who cannot see the organization uses the same path for the image.
  const { pinfold, cli: images, host } = await scene()
  await using _ = pinfold
  const cli = (...args: string[]) => images('tags', 'history', ...args)
  const [x, y] = [digestOf('x'), digestOf('y')]
  const shown = rowsOf((await cli('acme/team/app')).stdout).map((row) => row.slice(0, 3))
  assert.deepEqual(shown, [
    ['TIME', 'EVENT', 'DIGEST'],
    [minute(2), 'moved', x],
    [minute(1), 'moved', y],
    [minute(0), 'created', x],
  ])
  const window = await cli(`${host}/acme/team/app:latest`, '--start', minute(1), '--end', minute(2), '-o', 'json')
  assert.deepEqual(
    JSON.parse(window.stdout).map(({ digest }: Json) => digest),
    [y],
  )
  const asOf = async (time: string) => {
    const { code, stdout } = await cli('acme/team/app:latest', '--as-of', time, '-o', 'json')
    return code === 0 ? JSON.parse(stdout)[0].digest : code
  }
  assert.deepEqual([await asOf(minute(1)), await asOf('2026-05-01T10:01:59.999Z'), await asOf(minute(9))], [y, y, x])
  assert.equal(await asOf('2026-04-30'), 1)
  assert.deepEqual(rowsOf((await cli('acme/team/app', '--digest', x)).stdout), [
    ['TAG', 'EVENT', 'FROM', 'UNTIL'],
    ['1.0-r0', 'created', minute(4), 'now'],
    ['1.0', 'created', minute(3), 'now'],
    ['latest', 'moved', minute(2), 'now'],
    ['latest', 'created', minute(0), minute(1)],
  ])
  const digestRows = (await cli('acme/team/app', '--digest', x)).stdout
  assert.equal((await cli(`${host}/acme/team/app@${x}`)).stdout, digestRows, 'as images are pinned')
  assert.equal((await cli(`acme/team/app:1.0@${x}`)).stdout, digestRows)
  assert.equal((await cli(`acme/team/app@${x}`, '--digest', y)).code, 64)
  const cut = await cli(`acme/team/app@${x.slice(0, 20)}`)
  assert.deepEqual([cut.code, cut.stdout], [64, ''])
  assert.match(cut.stderr, /is not a valid digest: give sha256: and 64 hex digits/)
  assert.match(
    (await images('tags', 'list', `acme/team/app@${x}`)).stderr,
    /contains a digest, but this command takes a repository or a tag/,
  )
  const all = rowsOf((await cli('acme/team/app', '--all-tags')).stdout)
  assert.deepEqual([all.length, all[0]], [6, ['TIME', 'TAG', 'EVENT', 'DIGEST', 'BY']])
  assert.deepEqual(all[1], [minute(4), '1.0-r0', 'created', x, 'api operator'])
  assert.equal((await cli('acme/team/app:latest', '--all-tags')).code, 64)
  assert.equal((await cli('acme/team/app', '--all-tags', '--digest', x)).code, 64)
})

test('tags history finds a deleted image by its old path, and marks it as deleted', async () => {
  const { pinfold, org, team, repo, env } = await scene()
  await using _ = pinfold
  const owner = await pinfold.tokenFor((await pinfold.seed.member(org, roleUids.owner)).uid)
  const history = (args: string[], token = owner) =>
    run(['tags', 'history', ...args], { env: { ...env, PINFOLD_TOKEN: token } })
  await pinfold.operator.delete(`/registry/v2/repos/${repo}`)
  const gone = await history(['acme/team/app:latest'])
  // The tags as they were after their last update, at the same time.
  const when = minute(4).replace('.000Z', '.001Z')
  assert.equal(gone.stderr, `pinfold: acme/team/app was deleted on ${when}\n`)
  const events = ({ stdout }: { stdout: string }) => rowsOf(stdout).map(([, event]) => event)
  assert.deepEqual(events(gone), ['EVENT', 'deleted', 'moved', 'moved', 'created'])
  assert.deepEqual(events(await history([repo, '--deleted'])), events(gone))
  const byReader = await history(['acme/team/app'], env.PINFOLD_TOKEN)
  assert.deepEqual([byReader.code, byReader.stdout], [1, ''])

  // Another group gets the path, and later its repository is deleted too.
  await pinfold.operator.patch(`/iam/v2/groups/${team}`, { name: 'former' })
  const heir = (await pinfold.seed.group(org, { name: 'team' })).uid
  const other = (await pinfold.seed.repo(heir, { name: 'app' })).uid
  const now = await history(['acme/team/app'])
  assert.equal(now.code, 1)
  assert.match(now.stderr, /^pinfold: acme\/team\/app has never had a tag latest$/m)
  assert.deepEqual(events(await history(['acme/team/app', '--deleted'])), events(gone))
  await pinfold.operator.delete(`/registry/v2/repos/${other}`)
  const either = await history(['acme/team/app'])
  assert.equal(either.code, 1)
  for (const uid of [repo, other]) assert.match(either.stderr, new RegExp(uid))
})

test('prints one line for invalid arguments and missing images', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  const wrong: [args: string[], code: number, message: RegExp][] = [
    [['tags', 'app'], 64, /app is not a valid image name/],
    [['tags', 'Acme/App:v1'], 64, /Acme\/App:v1 is not a valid image name: names are lowercase; use acme\/app\n/],
    [['tags', 'acme/missing'], 1, /no image acme\/missing was found/],
    [['tags', 'acme/team/app', '--limit', '0'], 64, /--limit/],
    [['tags', 'acme/team/app', '--updated-within', 'long'], 64, /--updated-within/],
    [['tags', 'history', 'acme/team/app', '--start', 'then'], 64, /--start/],
    [['tags', 'history', 'acme/team/app', '--as-of', '2026-05-01', '--end', '2026-05-02'], 64, /--as-of/],
  ]
  for (const [args, code, message] of wrong) {
    const answer = await cli(...args)
    assert.deepEqual([answer.code, answer.stdout], [code, ''], answer.stderr)
    assert.match(answer.stderr, message)
  }
})

test('an import writes to a running server, prints its result, and changes nothing when repeated', async () => {
  await using storage = await createStorage()
  const file = join(storage.data, 'histories.json.gz')
  const history = (...digests: string[]) =>
    digests.map((text, i) => ({ updateTimestamp: minute(i), digest: digestOf(text) }))
  const tags = [
    { image: 'registry.example.com/base', tag: 'latest', listedAtEnd: true, history: history('a', 'b') },
    { image: 'registry.example.com/base', tag: '1.0', listedAtEnd: false, history: history('a') },
    { image: 'Not-A-Name', tag: 'latest', history: history('a') },
  ]
  writeFileSync(file, gzipSync(JSON.stringify({ tags })))
  await using server = await startInProcess(storage)
  const env = { ...storage.env, PINFOLD_API: server.url }
  const load = () => run(['tags', 'import', file, ...storage.args, '-o', 'json'], { env })
  const first = await load()
  assert.equal(first.code, 1, first.stderr)
  assert.match(first.stderr, /^pinfold: Not-A-Name: Invalid argument: name/m)
  const counts = { images: 2, imagesCreated: 1, tagsCreated: 2, recordsCreated: 3, recordsUnchanged: 0 }
  assert.partialDeepStrictEqual(JSON.parse(first.stdout), counts)
  const again = { images: 2, imagesCreated: 0, tagsCreated: 0, recordsCreated: 0, recordsUnchanged: 3 }
  assert.partialDeepStrictEqual(JSON.parse((await load()).stdout), again)

  const token = await tokenOf(storage)
  const shown = await run(['tags', 'history', 'public/base', '-o', 'json'], { env: { ...env, PINFOLD_TOKEN: token } })
  assert.deepEqual(
    JSON.parse(shown.stdout).map(({ time, digest, source }: Json) => [time, digest, source]),
    [
      [minute(1), digestOf('b'), 'SOURCE_IMPORT'],
      [minute(0), digestOf('a'), 'SOURCE_IMPORT'],
    ],
  )
  const listed = await fetch(`${server.url}/registry/v2/tags?name=1.0`, {
    headers: { authorization: `Bearer ${token}` },
  })
  assert.equal(((await listed.json()) as Json).tags[0].deprecated, true)
  for (const text of ['', '{}', '{"tags":[{}]}']) {
    writeFileSync(file, gzipSync(text))
    const bad = await run(['tags', 'import', file, ...storage.args], { env: storage.env })
    assert.equal(bad.code, 1, bad.stderr)
    assert.match(bad.stderr, /histories\.json\.gz: /)
  }
})

test('an import of long histories and of many tags is split into requests within the limits', async () => {
  await using storage = await createStorage()
  const file = join(storage.data, 'histories.json')
  const history = (records: number) =>
    Array.from({ length: records }, (_, i) => ({ updateTimestamp: minute(i), digest: digestOf(String(i % 2)) }))
  const image = 'registry.example.com/long'
  const tags = [
    { image, tag: 'latest', history: history(11_000) },
    ...Array.from({ length: 120 }, (_, i) => ({ image, tag: `v${i}`, history: history(i < 100 ? 110 : 1) })),
  ]
  writeFileSync(file, JSON.stringify({ tags }))
  await using server = await startInProcess(storage)
  const env = { ...storage.env, PINFOLD_API: server.url }
  const load = () => run(['tags', 'import', file, ...storage.args, '-o', 'json'], { env })
  const headers = { authorization: `Bearer ${await tokenOf(storage)}` }
  const requests = async () => {
    const text = await (await fetch(`${server.url}/metrics`, { headers })).text()
    return Number(
      /^pinfold_request_duration_seconds_count\{.*method="ImportTagHistory".*\} (\d+)$/m.exec(text)?.[1] ?? 0,
    )
  }
  const first = await load()
  assert.deepEqual([first.code, first.stderr], [0, ''])
  const all = 11_000 + 11_000 + 20
  const made = { images: 1, imagesCreated: 1, tagsCreated: 121, recordsCreated: all, recordsUnchanged: 0, refused: [] }
  assert.deepEqual(JSON.parse(first.stdout), made)
  // A request has at most 5,000 records or 100 tags. The one tag needs three requests; the last of them contains other tags too.
  assert.equal(await requests(), 5)
  const second = await load()
  const same = { images: 1, imagesCreated: 0, tagsCreated: 0, recordsCreated: 0, recordsUnchanged: all, refused: [] }
  assert.deepEqual(JSON.parse(second.stdout), same)
  assert.equal(await requests(), 10)

  const listed = (await (await fetch(`${server.url}/registry/v2/tags?name=latest`, { headers })).json()) as Json
  assert.equal(listed.tags[0].digest, digestOf('1'))
})

test('tags resolve shows the digest of a tag at an age or a time, the reason, and the next digest', async () => {
  const { pinfold, cli, repo } = await scene()
  await using _ = pinfold
  const digest = (text: string) => digestOf(text)
  const at = await cli('tags', 'resolve', 'acme/team/app', '--at', minute(1))
  assert.equal(at.stdout, `acme/team/app:latest is ${digest('y')}, assigned at ${minute(1)}\n`, at.stderr)
  const young = await cli('tags', 'resolve', 'acme/team/app', '--min-age', '1h')
  assert.equal(young.code, 1)
  assert.match(young.stdout, /^acme\/team\/app:latest has no digest: no image has had the tag for long enough\nnext: /)
  const [, , head, first] = rowsOf(young.stdout)
  assert.deepEqual(head, ['ASSIGNED (SKIPPED)', 'DIGEST', 'WHY', 'UNTIL'])
  assert.deepEqual(first, [minute(2), digest('x'), 'young', new Date(start + 2 * 60_000 + 3_600_000).toISOString()])
  const json = await cli('tags', 'resolve', `${repo}:1.0`, '--min-age', '1h', '--at', minute(3), '-o', 'json')
  assert.equal(JSON.parse(json.stdout).reason, 'young')
  const tags = [{ name: 'old', records: [{ time: minute(-600), digest: digest('x') }] }]
  ok(await pinfold.operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags }))
  const imported = await cli('tags', 'resolve', 'acme/team/app:old', '--min-age', '1h')
  assert.equal(imported.stdout, `acme/team/app:old is ${digest('x')}, assigned at ${minute(-600)} (imported)\n`)
  assert.equal((await cli('tags', 'resolve', 'acme/team/app')).code, 64)
  const wrong = await cli('tags', 'resolve', 'acme/team/app', '--min-age', 'soon')
  assert.match(wrong.stderr, /min_age/)
})

test('creates, lists, updates and deletes cooldown policies and their exemptions', async () => {
  const { pinfold, org, team, env } = await scene()
  await using _ = pinfold
  const owner = { ...env, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(['policies', 'cooldown', ...args], { env: owner })
  const made = await cli('create', '--in', 'acme/team/app', '--below', 'acme/team', '--min-age', '7d', '-o', 'json')
  const rule = JSON.parse(made.stdout) as Json
  assert.deepEqual([rule.mode, rule.minAge, rule.belowGroup], ['SERVE_OLDER', '7d', team])
  const changed = await cli('update', rule.uid, '--mode', 'deny', '--tags', 'v*,stable', '--name', 'a week')
  assert.equal(changed.stdout, `changed the cooldown policy ${rule.uid}\n`, changed.stderr)
  assert.deepEqual(rowsOf((await cli('list', '--in', 'acme')).stdout)[1], [
    rule.uid,
    'a week',
    '7d',
    'deny',
    'v* stable',
    'acme/team',
  ])
  const image = (...args: string[]) => run(['tags', 'resolve', 'acme/team/app:1.0', ...args], { env: owner })
  assert.equal((await cli('update', rule.uid, '--tags', '1.*')).code, 0)
  const held = await image('--rule', 'a week')
  assert.equal(held.code, 1)
  assert.match(
    held.stdout,
    /^acme\/team\/app:1\.0 has no digest: .*\ncooldown policy a week \(deny\) denies pulls of this tag now\nnext: /,
  )
  const { uid: member } = await pinfold.seed.member(team, roleUids.viewer)
  assert.equal((await image('--as', member)).stdout, held.stdout)
  assert.match((await image('--as', member, '--rule', 'a week')).stderr, /pull_rule_uid/)
  const until = new Date(start + 5 * 86_400_000).toISOString()
  const except = await cli('exemptions', 'create', digestOf('x'), '--in', 'acme', '--reason', 'a fix', '--until', until)
  assert.match(except.stdout, new RegExp(`^${digestOf('x')} is exempt until ${until}: ${org}/`))
  const [, row] = rowsOf((await cli('exemptions', 'list')).stdout)
  assert.deepEqual(row!.slice(1), [digestOf('x'), until, 'operator', 'a fix'])
  assert.equal((await cli('exemptions', 'revoke', row![0]!)).stdout, `${digestOf('x')} is no longer exempt\n`)
  assert.equal(rowsOf((await cli('exemptions', 'list')).stdout).length, 1)
  assert.equal((await cli('delete', rule.uid)).stdout, `deleted the cooldown policy ${rule.uid}\n`)
  assert.equal(rowsOf((await cli('list')).stdout).length, 1)
  assert.equal((await cli('create', '--below', 'acme', '--min-age', '7d')).code, 64, 'somewhere')
})

test('images referrers and images pulls show data of a tag or a digest, and fail for missing ones', async () => {
  const pinfold = await startRegistry()
  await using _ = pinfold
  const image = await pinfold.pusher.pushImage('acme/app', 'v1')
  const { digest } = await pushSbom(pinfold.pusher, 'acme/app', image, '{}')
  await pinfold.puller.ok(200, 'GET', 'acme/app/manifests/v1')
  await pinfold.app.usage.flush()
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(args, { env })
  const byTag = await cli('images', 'referrers', 'acme/app:v1')
  assert.deepEqual(rowsOf(byTag.stdout)[1]!.slice(0, 2), [digest, 'application/spdx+json'])
  assert.equal((await cli('images', 'referrers', 'acme/app', '--digest', image.digest)).stdout, byTag.stdout)
  assert.equal((await cli('images', 'referrers', `acme/app@${image.digest}`)).stdout, byTag.stdout)
  assert.match((await cli('images', 'pulls', `acme/app@${digest}`)).stderr, /last recorded pull: none/)
  const pulls = rowsOf((await cli('images', 'pulls', 'acme/app:v1')).stdout)
  assert.deepEqual(
    [pulls[0], pulls[1]!.slice(2)],
    [
      ['LAST', 'BY', 'PULLS', 'HEAD REQUESTS'],
      ['1', '0'],
    ],
  )
  const unpulled = await cli('images', 'pulls', 'acme/app', '--digest', digest)
  assert.match(unpulled.stderr, /last recorded pull: none/)
  const missing = await cli('images', 'pulls', 'acme/app:none')
  assert.deepEqual([missing.code, missing.stdout], [1, ''])
  assert.match(missing.stderr, /acme\/app has no tag none/)
  // All manifests were pushed today, so none is old enough to be listed.
  const nothing = await cli('images', 'unused', 'acme/app', '--days', '1')
  assert.deepEqual([nothing.code, rowsOf(nothing.stdout)], [0, [['DIGEST', 'TAGS', 'LAST PULL', 'BY', 'SAFE']]])
  assert.match((await cli('images', 'unused', 'acme/app', '--days', '91')).stderr, /days/)
})

test('images unused shows the last puller of each manifest, and reasons against its deletion', async () => {
  let now = Date.now() - 60 * 86_400_000
  const pinfold = await startRegistry({ clock: () => new Date(now) })
  await using _ = pinfold
  const image = await pinfold.pusher.pushImage('acme/app', 'v1')
  const { digest } = await pushSbom(pinfold.pusher, 'acme/app', image, '{}')
  await pinfold.puller.ok(200, 'GET', 'acme/app/manifests/v1')
  await pinfold.app.usage.flush()
  now = Date.now()
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: (await pinfold.as(operatorUid)).token! }
  const cli = (...args: string[]) => run(['images', 'unused', 'acme/app', ...args], { env })
  const listed = JSON.parse((await cli('-o', 'json')).stdout).items as { digest: string; safe: boolean }[]
  assert.deepEqual(
    new Map(listed.map((one) => [one.digest, one.safe])),
    new Map([
      [image.digest, true],
      [digest, false],
    ]),
  )
  const table = await cli()
  assert.match(table.stdout, new RegExp(`${image.digest} +v1 +\\d{4}-\\d\\d-\\d\\dT\\S+ +\\S.* yes`))
  assert.match(table.stdout, new RegExp(`${digest} .*no: part of ${image.digest}`))
})
