// Order and range of lists that commands print.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commands } from '#cli/commands.ts'
import { summaries } from '#cli/summaries.ts'
import { operatorUid } from '#lib/uid.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { imageOf, registryClient, types } from '../support/registry.ts'

/** List commands without a list of the API below them that can be sorted. */
const others: Record<string, string> = {
  'roles capabilities list': 'the command collects the names from all roles',
  'server quotas list': 'one row for each organization, read from the data folder',
  'server scanners list': 'the few scanners of a server',
}

const listed = Object.keys(summaries).filter((path) => path.endsWith(' list') && !(path in others))

test('every list command has the options --limit, --order-by and --skip', async () => {
  assert.ok(listed.length > 25)
  for (const path of listed) {
    const { options } = await commands.load(path)
    const flags = options.map((option) => option.flags.split(' ')[0])
    for (const flag of ['--limit', '--order-by', '--skip']) assert.ok(flags.includes(flag), `${path} has no ${flag}`)
  }
})

/** Organization acme with repositories, tags, roles and webhooks. */
async function scene() {
  const pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const host = new URL(pinfold.url).host
  const client = registryClient(pinfold.url, await pinfold.tokenFor(operatorUid, { audience: host }))
  const config = await client.pushBlob('acme/b', '{}', types.config)
  const layer = await client.pushBlob('acme/b', 'content')
  const { digest } = await client.pushManifest('acme/b', imageOf(config, [layer]), 'y')
  for (const name of ['a', 'd', 'c']) await pinfold.seed.repo(org, { name })
  for (const tag of ['x', 'z']) await client.pushManifest('acme/b', imageOf(config, [layer]), tag)
  const owner = await pinfold.seed.member(org, roleUids.owner)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(owner.uid) }
  const cli = (...args: string[]) => run(args, { env })
  return { pinfold, cli, digest }
}

test('the order and the number of skipped items are those of the options', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  const names = async (...args: string[]) => {
    const { code, stdout, stderr } = await cli(...args, '-o', 'json')
    assert.equal(code, 0, stderr)
    return (JSON.parse(stdout) as { items: { name: string }[] }).items.map(({ name }) => name)
  }
  assert.deepEqual(await names('repos', 'list'), ['a', 'b', 'c', 'd'])
  assert.deepEqual(await names('repos', 'list', '--order-by', 'name desc'), ['d', 'c', 'b', 'a'])
  assert.deepEqual(await names('repos', 'list', '--order-by', 'create_time'), ['b', 'a', 'd', 'c'])
  const middle = ['--order-by', 'name', '--skip', '1', '--limit', '2']
  assert.deepEqual(await names('repos', 'list', ...middle), ['b', 'c'])
  assert.match((await cli('repos', 'list', ...middle)).stderr, /the list has more items/)
  assert.deepEqual(await names('images', 'list', ...middle), ['b', 'c'])
  assert.deepEqual(await names('repos', 'list', '--skip', '4'), [])

  assert.deepEqual(await names('tags', 'list', 'acme/b', '--order-by', 'name desc'), ['z', 'y', 'x'])
  assert.deepEqual(await names('tags', 'list', 'acme/b', '--order-by', 'name', '--skip', '2'), ['z'])
  assert.deepEqual(await names('tags', 'list', 'acme/b', '--part', 'y', '--skip', '1'), [])

  for (const name of ['two', 'one', 'three']) {
    assert.equal((await cli('tokens', 'pull', 'create', '--name', name)).code, 0)
  }
  const tokens = ['tokens', 'pull', 'list', '--order-by', 'name']
  assert.deepEqual(await names(...tokens), ['one', 'three', 'two'])
  // The list of the API has other identities before these.
  assert.deepEqual(await names(...tokens, '--skip', '1', '--limit', '1'), ['three'])

  const times = async (...args: string[]) => {
    const { stdout } = await cli('audit', 'list', '-o', 'json', ...args)
    return (JSON.parse(stdout) as { items: { createTime: string }[] }).items.map(({ createTime }) => createTime)
  }
  const oldest = await times('--order-by', 'create_time')
  assert.ok(oldest.length > 3)
  assert.deepEqual(oldest, oldest.toSorted())
  assert.deepEqual(await times('--order-by', 'create_time', '--skip', '2'), oldest.slice(2))
})

/** Arguments that list commands need. */
const needed: Record<string, readonly string[]> = {
  'tags list': ['acme/b'],
  'packages list': ['acme/b:x'],
  'vulnerabilities vex list': ['acme/b:x'],
  'mirrors list': ['--in', 'acme'],
  'access-requests list': ['acme'],
}

test('a wrong field is a usage error with the valid fields in every list command', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  for (const path of listed) {
    const command = [...path.split(' '), ...(needed[path] ?? [])]
    const { code, stdout, stderr } = await cli(...command, '--order-by', 'nonsense')
    assert.deepEqual([code, stdout], [64, ''], `${path}: ${stderr}`)
    assert.match(stderr, /^pinfold: --order-by must name one of: [a-z_]+(, [a-z_]+)*\n/, path)
  }
  const twice = await cli('repos', 'list', '--order-by', 'name down')
  assert.equal(twice.code, 64)
  assert.match(twice.stderr, /^pinfold: --order-by must be one field, optionally followed by asc or desc\n/)
  for (const skip of ['-1', 'x', '2147483648']) {
    const wrong = await cli('repos', 'list', '--skip', skip)
    assert.equal(wrong.code, 64)
    assert.match(wrong.stderr, /^pinfold: --skip must be a whole number from 0 to 2147483647\n/)
  }
})
