// Commands for retention policies, tag protection rules, legal holds and quarantine.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { digestOf } from '../support/registry.ts'

/** `acme/team/web`, and functions that run commands as the operator. */
async function scene() {
  const pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const team = (await pinfold.seed.group(org, { name: 'team' })).uid
  const repo = (await pinfold.seed.repo(team, { name: 'web' })).uid
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(args, { env })
  /** Output of a command that must succeed. */
  const done = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    return stdout
  }
  return { pinfold, org, team, repo, cli, done }
}

const keeping = ['--keep-days-after', '30', '--mode', 'enforce']

test('finds a retention policy by name, by scope and name, or by uid', async () => {
  const { pinfold, team, cli, done } = await scene()
  await using _ = pinfold
  const uid = (
    await done('policies', 'retention', 'create', 'releases', '--in', 'acme/team', ...keeping, '-o', 'id')
  ).trimEnd()
  assert.ok(uid.startsWith(`${team}/`))
  for (const name of ['releases', 'acme/team/releases', uid])
    assert.match(await done('policies', 'retention', 'describe', name), new RegExp(`^uid {4}${uid}$`, 'm'), name)

  const other = (
    await done('policies', 'retention', 'create', 'releases', '--in', 'acme/team/web', ...keeping, '-o', 'id')
  ).trimEnd()
  const several = await cli('policies', 'retention', 'describe', 'releases')
  assert.deepEqual([several.code, several.stdout], [1, ''])
  assert.match(several.stderr, /several retention policies .*releases/)
  assert.match(
    await done('policies', 'retention', 'update', 'acme/team/web/releases', '--keep-last', '5'),
    /^keeps {2}.*last 5$/m,
  )
  assert.doesNotMatch(await done('policies', 'retention', 'describe', 'acme/team/releases'), /last 5/)
  await done('policies', 'retention', 'delete', 'acme/team/web/releases', '--yes')
  assert.equal(await done('policies', 'retention', 'list', '-o', 'id'), `${uid}\n`, `and not ${other}`)

  const missing = await cli('policies', 'retention', 'describe', 'acme/team/none')
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /no retention policy .*none.*\n.*pinfold policies retention list/)
  await done('policies', 'retention', 'delete', 'none', '--yes', '--allow-missing')
  await done('policies', 'tag-protection', 'create', 'fixed', '--in', 'acme', '--tag', 'v*', '--immutable')
  assert.match(await done('policies', 'tag-protection', 'update', 'fixed', '--tag', 'r*'), /^tags +r\*$/m)
})

test('lists of rules show the scope of each rule, and can be limited to a scope', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  for (const scope of ['acme', 'acme/team', 'acme/team/web'])
    await done('policies', 'retention', 'create', `at ${scope.split('/').length}`, '--in', scope, ...keeping)
  const at = (text: string) => text.match(/at \d {2}\S+/g)
  assert.deepEqual(at(await done('policies', 'retention', 'list')), [
    'at 1  acme',
    'at 2  acme/team',
    'at 3  acme/team/web',
  ])
  assert.deepEqual(at(await done('policies', 'retention', 'list', '--in', 'acme/team')), [
    'at 2  acme/team',
    'at 3  acme/team/web',
  ])
  assert.deepEqual(at(await done('policies', 'retention', 'list', '--in', 'acme/team/web')), ['at 3  acme/team/web'])
  assert.match(
    await done('policies', 'retention', 'list', '-o', 'tree'),
    /^acme\n├─ at 1\n└─ team\n {3}├─ at 2\n {3}└─ web\n {6}└─ at 3$/m,
  )
  const wrong = await cli('policies', 'retention', 'create', 'x', '--in', 'acme/team/nothing', ...keeping)
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /no folder or repository acme\/team\/nothing was found: .*\n.*pinfold repos list/)
})

test('refuses an invalid number, and changes nothing', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  await done('policies', 'retention', 'create', 'releases', '--in', 'acme', ...keeping)
  await done('mirrors', 'upstreams', 'create', 'hub', '--in', 'acme', '--url', 'https://registry.example.com')
  await done('mirrors', 'upstreams', 'update', 'hub', '--requests-per-second', '7')
  for (const [words, flag] of [
    ['policies retention update releases --keep-days-after', '--keep-days-after'],
    ['policies retention create more --in acme --keep-days-after 3 --mode off --keep-last', '--keep-last'],
    ['policies retention update releases --untagged-days', '--untagged-days'],
    ['mirrors upstreams update hub --requests-per-second', '--requests-per-second'],
  ] as const) {
    for (const given of ['many', '3.5', '']) {
      const { code, stdout, stderr } = await cli(...words.split(' '), given)
      assert.deepEqual([code, stdout], [64, ''], `${words} ${given}`)
      assert.match(stderr, new RegExp(`^pinfold: ${flag} .*whole number`))
    }
  }
  assert.match(await done('policies', 'retention', 'describe', 'releases'), /^keeps {2}30 days$/m)
  assert.match(await done('mirrors', 'upstreams', 'describe', 'hub'), /^requests\/s +7$/m)
  assert.equal((await done('policies', 'retention', 'list', '-o', 'terse')).trimEnd(), 'releases')
})

test('lists ended holds and quarantines on request', async () => {
  const { pinfold, done } = await scene()
  await using _ = pinfold
  for (const [kind, scope] of [
    ['holds', 'acme'],
    ['quarantine', 'acme/team/web'],
  ] as const) {
    const digest = kind === 'holds' ? ['--digest', digestOf(kind)] : [digestOf(kind)]
    const made = ['--in', scope, ...digest, '--reason', 'a look', '-o', 'id']
    const uid = (await done(kind, 'create', ...made)).trimEnd()
    assert.match(await done(kind, 'list', '--in', 'acme'), new RegExp(`${uid} +${scope} +${digestOf(kind)} .*a look`))
    await done(kind, 'release', uid)
    assert.doesNotMatch(await done(kind, 'list'), /a look/)
    assert.match(
      await done(kind, 'list', '--ended', '-o', 'wide'),
      new RegExp(`${uid}.* \\d{4}-\\d\\d-\\d\\dT.*Z$`, 'm'),
    )
  }
})

test('options accept identities by name, and tables show their names', async () => {
  const { pinfold, org, cli, done } = await scene()
  await using _ = pinfold
  const bot = await pinfold.seed.member(org, roleUids.owner)
  await done(
    'policies',
    'tag-protection',
    'create',
    'ours',
    '--in',
    'acme',
    '--tag',
    'v*',
    '--mover',
    `acme/${bot.name}`,
  )
  const [rule] = JSON.parse(await done('policies', 'tag-protection', 'list', '-o', 'json')).items
  assert.deepEqual(rule.movers, [bot.uid])
  assert.match(await done('policies', 'tag-protection', 'list'), new RegExp(` ${bot.name}$`, 'm'))
  const unknown = await cli('policies', 'tag-protection', 'update', 'ours', '--mover', 'nobody')
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /no identity .*nobody.*\n.*pinfold identities list/)

  const pulls = (...args: string[]) => done('policies', 'cooldown', ...args)
  const age = ['--in', 'acme', '--min-age', '7d']
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
  const hold = ['holds', 'create', '--in', 'acme', '--digest', digestOf('x'), '--reason', 'a look']
  assert.match((await run(hold, { env })).stdout, new RegExp(`^by +${bot.name}$`, 'm'))
  assert.match(await done('holds', 'list', '-o', 'wide'), new RegExp(` ${bot.name} *$`, 'm'))
  assert.match(await done('images', 'unused', 'acme/team/web', '--except', bot.name), /^DIGEST/)
})

test('images list accepts the path of a folder', async () => {
  const { pinfold, org, cli, done } = await scene()
  await using _ = pinfold
  await pinfold.seed.repo(org, { name: 'above' })
  assert.match(await done('images', 'list', '--in', 'acme/team'), /\/acme\/team\/web /)
  assert.doesNotMatch(await done('images', 'list', '--in', 'acme/team'), /above/)
  assert.match(await done('images', 'list', '--in', org), /above/)
  const wrong = await cli('images', 'list', '--in', 'acme/none')
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /no folder .*none/)
})

test('help explains upstreams and quarantine', async () => {
  assert.match((await run(['mirrors', 'upstreams', '--help'])).stdout, /Create an upstream/)
  assert.match((await run(['quarantine', 'create', '--help'])).stdout, /deny all its pulls/)
})

test('finds cooldown policies by their names, and refuses an empty name', async () => {
  const { pinfold, cli, done } = await scene()
  await using _ = pinfold
  const pulls = (...args: string[]) => done('policies', 'cooldown', ...args)
  const create = ['create', '--in', 'acme', '--below', 'acme', '--min-age', '7d', '--mode', 'observe']
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
    const { code, stderr } = await cli('policies', 'cooldown', verb, '', ...rest)
    assert.equal(code, 64)
    assert.match(stderr, /cooldown policy.* empty/)
  }
  await pulls('delete', 'a week')
  assert.doesNotMatch(await pulls('list'), /a week/)
  assert.match(await pulls('list'), /7d +observe/)
})

test('an error names the missing or conflicting options of a cooldown policy, and refuses an exemption that is not a uid', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  for (const [words, says] of [
    ['policies cooldown create --in acme --below acme', /--min-age is required/],
    ['policies cooldown create --in acme --min-age 7d', /give either --identities or --below/],
    [
      'policies cooldown create --in acme --min-age 7d --below acme --identities x',
      /give either --identities or --below/,
    ],
    ['policies cooldown exemptions revoke x', /x is not a uid; pinfold policies cooldown exemptions list lists/],
  ] as const) {
    const { code, stdout, stderr } = await cli(...words.split(' '))
    assert.deepEqual([code, stdout], [64, ''], words)
    assert.match(stderr, says)
  }
})

test('a member with access only to a folder can give its path', async () => {
  const { pinfold, org, team } = await scene()
  await using _ = pinfold
  const bot = await pinfold.seed.member(team, roleUids.owner)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(bot.uid) }
  const cli = (...args: string[]) => run(args, { env })
  const made = await cli('policies', 'retention', 'create', 'ours', '--in', 'acme/team', ...keeping, '-o', 'id')
  assert.deepEqual([made.code, made.stderr], [0, ''])
  assert.ok(made.stdout.startsWith(`${team}/`))
  for (const path of ['acme', 'acme/other', 'acme/team/team', 'team']) {
    const { code, stderr } = await cli('policies', 'retention', 'create', 'x', '--in', path, ...keeping)
    assert.equal(code, 1, path)
    assert.match(stderr, /no (organi[sz]ation|folder or repository) .*\n/)
  }
  assert.match((await cli('images', 'list', '--in', 'acme')).stderr, /ORG\/FOLDER/)
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
  const either = await run(['images', 'list', '--in', 'acme/a/end'], { env: asBoth })
  assert.deepEqual([either.code, either.stdout], [1, ''])
  for (const end of ends) assert.ok(either.stderr.includes(end), either.stderr)
})

test('refuses a path that a folder and a repository share, unless a former option names the kind', async () => {
  const { pinfold, team, repo, cli, done } = await scene()
  await using _ = pinfold
  const folder = (await pinfold.seed.group(team, { name: 'web' })).uid
  const create = (name: string, ...scope: string[]) =>
    cli('policies', 'admission', 'create', name, ...scope, '--fixable')
  for (const command of [
    ['policies', 'admission', 'create', 'one', '--fixable'],
    ['policies', 'retention', 'create', 'one', ...keeping],
    ['identities', 'explain', 'nobody', 'repo.list'],
  ]) {
    const { code, stdout, stderr } = await cli(...command, '--in', 'acme/team/web')
    assert.deepEqual([code, stdout], [64, ''], command.join(' '))
    assert.ok(stderr.includes(`${folder} is the folder, ${repo} is the repository`), stderr)
  }
  assert.equal((await create('two', '--in', folder)).code, 0)
  assert.equal((await create('three', '--group', 'acme/team/web')).code, 0)
  assert.equal((await create('four', '--image', 'acme/team/web')).code, 0)
  const { items } = JSON.parse(await done('policies', 'admission', 'list', '-o', 'json'))
  const scopes = items.map(
    ({ uid, name }: { uid: string; name: string }) => `${name} ${uid.slice(0, uid.lastIndexOf('/'))}`,
  )
  assert.deepEqual(scopes.sort(), [`four ${repo}`, `three ${folder}`, `two ${folder}`])
})
