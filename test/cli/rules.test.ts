// Commands for retention policies, immutable tags, holds and quarantine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { digestOf } from '../support/registry.ts'

/** `acme/team/web`, and a way to type `pinfold images …` as the operator. */
async function scene() {
  const pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const team = (await pinfold.seed.group(org, { name: 'team' })).uid
  const repo = (await pinfold.seed.repo(team, { name: 'web' })).uid
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(['images', ...args], { env })
  /** Output of a command that must succeed. */
  const done = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    return stdout
  }
  return { pinfold, org, team, repo, cli, done }
}

const keeping = ['--keep-days-after', '30', '--mode', 'enforce']

test('a rule is named by its name, by its place and its name, or by its uid', async () => {
  const { pinfold, team, cli, done } = await scene()
  await using _ = pinfold
  const uid = (await done('retention', 'create', 'releases', '--parent', 'acme/team', ...keeping, '-o', 'id')).trimEnd()
  assert.ok(uid.startsWith(`${team}/`))
  for (const name of ['releases', 'acme/team/releases', uid])
    assert.match(await done('retention', 'describe', name), new RegExp(`^uid {4}${uid}$`, 'm'), name)

  const other = (
    await done('retention', 'create', 'releases', '--parent', 'acme/team/web', ...keeping, '-o', 'id')
  ).trimEnd()
  const several = await cli('retention', 'describe', 'releases')
  assert.deepEqual([several.code, several.stdout], [1, ''])
  assert.match(
    several.stderr,
    /several retention rules are called releases; name one as GROUP\/releases, or by its uid/,
  )
  assert.match(await done('retention', 'update', 'acme/team/web/releases', '--keep-last', '5'), /^keeps {2}.*last 5$/m)
  assert.doesNotMatch(await done('retention', 'describe', 'acme/team/releases'), /last 5/)
  await done('retention', 'delete', 'acme/team/web/releases', '--yes')
  assert.equal(await done('retention', 'list', '-o', 'id'), `${uid}\n`, `and not ${other}`)

  const missing = await cli('retention', 'describe', 'acme/team/none')
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /no retention rule none in acme\/team .*\n.*pinfold images retention list shows/)
  await done('retention', 'delete', 'none', '--yes', '--allow-missing')
  await done('tag-rules', 'create', 'fixed', '--parent', 'acme', '--tag', 'v*', '--immutable')
  assert.match(await done('tag-rules', 'update', 'fixed', '--tag', 'r*'), /^tags +r\*$/m)
})

test('lists of rules show the scope of each, and can be narrowed to a scope', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  for (const place of ['acme', 'acme/team', 'acme/team/web'])
    await done('retention', 'create', `at ${place.split('/').length}`, '--parent', place, ...keeping)
  const at = (text: string) => text.match(/at \d {2}\S+/g)
  assert.deepEqual(at(await done('retention', 'list')), ['at 1  acme', 'at 2  acme/team', 'at 3  acme/team/web'])
  assert.deepEqual(at(await done('retention', 'list', 'acme/team')), ['at 2  acme/team', 'at 3  acme/team/web'])
  assert.deepEqual(at(await done('retention', 'list', 'acme/team/web')), ['at 3  acme/team/web'])
  assert.match(
    await done('retention', 'list', '-o', 'tree'),
    /^acme\n├─ at 1\n└─ team\n {3}├─ at 2\n {3}└─ web\n {6}└─ at 3$/m,
  )
  const wrong = await cli('retention', 'create', 'x', '--parent', 'acme/team/nothing', ...keeping)
  assert.equal(wrong.code, 1)
  assert.match(
    wrong.stderr,
    /there is no folder or repository acme\/team\/nothing that you can see\n.*images repos list/,
  )
})

test('refuses an invalid number, and changes nothing', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  await done('retention', 'create', 'releases', '--parent', 'acme', ...keeping)
  await done('upstreams', 'create', 'hub', '--parent', 'acme', '--url', 'https://registry.example.com')
  await done('upstreams', 'update', 'hub', '--requests-per-second', '7')
  for (const [words, flag] of [
    ['retention update releases --keep-days-after', '--keep-days-after'],
    ['retention create more --parent acme --keep-days-after 3 --mode off --keep-last', '--keep-last'],
    ['retention update releases --untagged-days', '--untagged-days'],
    ['upstreams update hub --requests-per-second', '--requests-per-second'],
  ] as const) {
    for (const given of ['many', '3.5', '']) {
      const { code, stdout, stderr } = await cli(...words.split(' '), given)
      assert.deepEqual([code, stdout], [64, ''], `${words} ${given}`)
      assert.ok(stderr.startsWith(`pinfold: ${flag} takes a whole number, and not `), stderr)
    }
  }
  assert.match(await done('retention', 'describe', 'releases'), /^keeps {2}30 days$/m)
  assert.match(await done('upstreams', 'describe', 'hub'), /^requests\/s {10}7$/m)
  assert.equal((await done('retention', 'list', '-o', 'terse')).trimEnd(), 'releases')
})

test('lists ended holds and quarantines on request', async () => {
  const { pinfold, done } = await scene()
  await using _ = pinfold
  for (const [kind, place] of [
    ['holds', 'acme'],
    ['quarantine', 'acme/team/web'],
  ] as const) {
    const made = ['--parent', place, '--digest', digestOf(kind), '--reason', 'a look', '-o', 'id']
    const uid = (await done(kind, 'create', ...made)).trimEnd()
    assert.match(await done(kind, 'list', 'acme'), new RegExp(`${uid} +${place} +${digestOf(kind)} .*a look`))
    await done(kind, 'release', uid)
    assert.doesNotMatch(await done(kind, 'list'), /a look/)
    assert.match(
      await done(kind, 'list', '--ended', '-o', 'wide'),
      new RegExp(`${uid}.* \\d{4}-\\d\\d-\\d\\dT.*Z$`, 'm'),
    )
  }
})

test('identities are named by their names, and shown so', async () => {
  const { pinfold, org, cli, done } = await scene()
  await using _ = pinfold
  const bot = await pinfold.seed.member(org, roleUids.owner)
  await done('tag-rules', 'create', 'ours', '--parent', 'acme', '--tag', 'v*', '--mover', `acme/${bot.name}`)
  const [rule] = JSON.parse(await done('tag-rules', 'list', '-o', 'json')).items
  assert.deepEqual(rule.movers, [bot.uid])
  assert.match(await done('tag-rules', 'list'), new RegExp(` ${bot.name}$`, 'm'))
  const unknown = await cli('tag-rules', 'update', 'ours', '--mover', 'nobody')
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /no identity nobody that you can see\n.*pinfold iam identities list shows/)

  const pulls = (...args: string[]) => done('repos', 'pull-rules', ...args)
  const age = ['--group', 'acme', '--min-age', '7d']
  await pulls('create', ...age, '--identities', bot.name)
  await pulls('create', ...age, '--below', 'acme/team')
  assert.deepEqual(
    (await pulls('list'))
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {2,}/).at(-1))
      .toSorted(),
    ['acme/team', bot.name],
  )

  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(bot.uid) }
  const hold = ['images', 'holds', 'create', '--parent', 'acme', '--digest', digestOf('x'), '--reason', 'a look']
  assert.match((await run(hold, { env })).stdout, new RegExp(`^by +${bot.name}$`, 'm'))
  assert.match(await done('holds', 'list', '-o', 'wide'), new RegExp(` ${bot.name} *$`, 'm'))
  assert.match(await done('unpulled', 'acme/team/web', '--except', bot.name), /^DIGEST/)
})

test('images are listed by the name of a group', async () => {
  const { pinfold, org, cli, done } = await scene()
  await using _ = pinfold
  await pinfold.seed.repo(org, { name: 'above' })
  assert.match(await done('list', '--group', 'acme/team'), /\/acme\/team\/web /)
  assert.doesNotMatch(await done('list', '--group', 'acme/team'), /above/)
  assert.match(await done('list', '--group', org), /above/)
  const wrong = await cli('list', '--group', 'acme/none')
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /there is no folder none in acme that you can see/)
})

test('help explains upstreams and quarantine', async () => {
  assert.match((await run(['images', 'upstreams', '--help'])).stdout, /Make an upstream/)
  assert.match((await run(['images', 'quarantine', 'create', '--help'])).stdout, /nobody is to pull/)
})

test('rules of pulls are named as others are, and never by nothing', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  const pulls = (...args: string[]) => done('repos', 'pull-rules', ...args)
  const create = ['create', '--group', 'acme', '--below', 'acme', '--min-age', '7d', '--mode', 'observe']
  await pulls(...create)
  await pulls(...create, '--name', 'a week')
  await pulls('update', 'acme/a week', '--min-age', '3d')
  const rows = (await pulls('list')).split('\n').filter((line) => line.includes('observe'))
  assert.deepEqual(
    rows.map((line) => /a week +3d|^\S+ +7d/.test(line)),
    [true, true],
    rows.join('\n'),
  )
  for (const words of ['delete', 'update --mode deny']) {
    const [verb = '', ...rest] = words.split(' ')
    const { code, stderr } = await cli('repos', 'pull-rules', verb, '', ...rest)
    assert.equal(code, 64)
    assert.match(stderr, /say which pull rule: its name or its uid is empty/)
  }
  await pulls('delete', 'a week')
  assert.doesNotMatch(await pulls('list'), /a week/)
  assert.match(await pulls('list'), /7d +observe/)
})

test('names the option for a value that a pull rule or an exception lacks', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  for (const [words, says] of [
    ['repos pull-rules create --group acme --below acme', /by --min-age/],
    ['repos pull-rules create --group acme --min-age 7d', /by --identities or by --below/],
    ['repos pull-rules create --group acme --min-age 7d --below acme --identities x', /not by both/],
    ['repos pull-rules revoke x', /x is no uid; pinfold images repos pull-rules exceptions shows/],
  ] as const) {
    const { code, stdout, stderr } = await cli(...words.split(' '))
    assert.deepEqual([code, stdout], [64, ''], words)
    assert.match(stderr, says)
  }
})

test('a member with rights in a folder only names it by its path', async () => {
  const { pinfold, org, team } = await scene()
  await using _ = pinfold
  const bot = await pinfold.seed.member(team, roleUids.owner)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(bot.uid) }
  const cli = (...args: string[]) => run(['images', ...args], { env })
  const made = await cli('retention', 'create', 'ours', '--parent', 'acme/team', ...keeping, '-o', 'id')
  assert.deepEqual([made.code, made.stderr], [0, ''])
  assert.ok(made.stdout.startsWith(`${team}/`))
  for (const path of ['acme', 'acme/other', 'acme/team/team', 'team']) {
    const { code, stderr } = await cli('retention', 'create', 'x', '--parent', path, ...keeping)
    assert.equal(code, 1, path)
    assert.match(stderr, /there is no (organisation|folder or repository) .* that you can see\n/)
  }
  assert.match((await cli('list', '--group', 'acme')).stderr, /you can see none; a folder is named as ORG\/FOLDER/)
  // Two folders have the same name, and the caller sees none of the groups above. The command refuses, and lists both uids.
  const ends = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const above = (await pinfold.seed.group(org, { name })).uid
      return (await pinfold.seed.group(above, { name: 'end' })).uid as string
    }),
  )
  const both = await pinfold.seed.identity(org)
  for (const end of ends) await pinfold.seed.binding(end, both.uid, roleUids.viewer)
  const asBoth = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(both.uid) }
  const either = await run(['images', 'list', '--group', 'acme/a/end'], { env: asBoth })
  assert.deepEqual([either.code, either.stdout], [1, ''])
  for (const end of ends) assert.ok(either.stderr.includes(end), either.stderr)
})
