import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operatorUid } from '#lib/uid.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { imageOf, registryClient, types } from '../support/registry.ts'

/** `acme/app` with two images, the first of them tagged 1.0. */
async function scene() {
  const pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const host = new URL(pinfold.url).host
  const client = registryClient(pinfold.url, await pinfold.tokenFor(operatorUid, { audience: host }))
  const push = async (content: string, tag?: string) => {
    const config = await client.pushBlob('acme/app', '{}', types.config)
    return (await client.pushManifest('acme/app', imageOf(config, [await client.pushBlob('acme/app', content)]), tag))
      .digest
  }
  const [one, two] = [await push('one', '1.0'), await push('two')]
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const cli = (...args: string[]) => run(['images', ...args], { env })
  return { pinfold, org, one, two, cli }
}

test('tags are created, moved, resolved and deleted, and the history shows it by name', async () => {
  const { pinfold, one, two, cli } = await scene()
  await using _ = pinfold
  assert.equal((await cli('tags', 'create', 'acme/app:stable', '1.0')).stdout, `acme/app:stable ${one}\n`)
  assert.equal((await cli('tags', 'move', 'acme/app:stable', two)).code, 0)
  assert.equal((await cli('tags', 'resolve', 'acme/app:stable')).stdout, `${two}\n`)
  assert.match((await cli('tags', 'list', 'acme/app')).stdout, /^stable /m)
  assert.match((await cli('tags', 'acme/app')).stdout, /^stable /m)

  const kept = await cli('tags', 'delete', 'acme/app:stable')
  assert.equal(kept.code, 64)
  assert.match(
    kept.stderr,
    new RegExp(`would delete the tag stable of acme/app, which points to ${two}.*--yes does it`),
  )
  assert.equal((await cli('tags', 'delete', 'acme/app:stable', '--yes')).code, 0)
  const { stdout } = await cli('history', 'acme/app:stable')
  const rows = stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(/ {2,}/))
  assert.deepEqual(
    rows.map(([, event, digest, by]) => [event, digest, by]),
    [
      ['deleted', two, 'api operator'],
      ['moved', two, 'api operator'],
      ['created', one, 'api operator'],
    ],
  )
})

test('a tag is moved only from the expected digest, and created only if it does not exist', async () => {
  const { pinfold, one, two, cli } = await scene()
  await using _ = pinfold
  const stale = await cli('tags', 'move', 'acme/app:1.0', two, '--if', two)
  assert.deepEqual([stale.code, stale.stdout], [1, ''])
  assert.match(stale.stderr, new RegExp(`acme/app:1.0 points to ${one} now, and was not moved\\n.*images history`))
  assert.equal((await cli('tags', 'resolve', 'acme/app:1.0')).stdout, `${one}\n`)
  const moved = await cli('tags', 'move', 'acme/app:1.0', two, '--if', one)
  assert.equal(moved.code, 0, moved.stderr)
  assert.equal((await cli('tags', 'resolve', 'acme/app:1.0')).stdout, `${two}\n`)
  assert.equal((await cli('tags', 'move', 'acme/app:1.0', two, '--if', 'latest')).code, 64)
})

test('names the member who moved a tag if the caller may see members', async () => {
  const { pinfold, org, two, cli } = await scene()
  await using _ = pinfold
  const bot = await pinfold.seed.member(org, roleUids.push)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(bot.uid) }
  const moved = await run(['images', 'tags', 'move', 'acme/app:1.0', two], { env })
  assert.equal(moved.code, 0, moved.stderr)
  assert.match((await cli('history', 'acme/app:1.0')).stdout, new RegExp(` {2}api ${bot.name}\\n`))
})

test('an existing, a missing and an unknown tag end with the next step', async () => {
  const { pinfold, two, cli } = await scene()
  await using _ = pinfold
  const wrong: [string[], RegExp][] = [
    [['tags', 'create', 'acme/app:1.0', two], /acme\/app:1\.0 is there, at sha256:.*\n.*tags move/],
    [['tags', 'move', 'acme/app:2.0', two], /there is no tag 2\.0 of acme\/app\n.*images tags acme\/app/],
    [['tags', 'resolve', 'acme/app:2.0'], /there is no tag 2\.0/],
    [['tags', 'create', 'acme/app:3.0', `sha256:${'0'.repeat(64)}`], /does not have the manifest sha256:0000/],
    [['history', 'acme/app:2.0'], /there has never been a tag 2\.0 of acme\/app\n/],
    [['history', 'acme/app', '--digest', `sha256:${'0'.repeat(64)}`], /no tag of acme\/app has pointed to sha256:000/],
  ]
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await cli(...args)
    assert.deepEqual([code, stdout], [1, ''], args.join(' '))
    assert.match(stderr, message)
  }
  assert.equal((await cli('tags', 'resolve', 'acme/app')).code, 64)
})

test('repositories are made by their path, described, changed and deleted', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  assert.match(
    (await cli('repos', 'create', 'acme/shop', '--description', 'Sells')).stdout,
    /^repository +acme\/shop$/m,
  )
  assert.equal((await cli('repos', 'update', 'acme/shop', '--description', 'Sells it')).code, 0)
  assert.equal(JSON.parse((await cli('repos', 'describe', 'acme/shop', '-o', 'json')).stdout).description, 'Sells it')
  assert.equal((await cli('repos', 'list', 'acme', '-o', 'terse')).stdout, 'acme/app\nacme/shop\n')
  assert.equal((await cli('repos', 'delete', 'acme/shop')).code, 0)
  assert.equal((await cli('repos', 'list', '--name', 'shop', '-o', 'terse')).stdout, '')
  const nowhere = await cli('repos', 'create', 'shop')
  assert.equal(nowhere.code, 64)
  assert.match(nowhere.stderr, /names no organisation: ORG\/NAME does|name it as acme\/app/)
})
