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
  const cli = (...args: string[]) => run(args, { env })
  return { pinfold, org, one, two, cli }
}

test('creates, updates, resolves and deletes tags, and the history shows who did it', async () => {
  const { pinfold, one, two, cli } = await scene()
  await using _ = pinfold
  assert.equal((await cli('tags', 'create', 'acme/app:stable', '1.0')).stdout, `acme/app:stable ${one}\n`)
  assert.equal((await cli('tags', 'update', 'acme/app:stable', two)).code, 0)
  assert.equal((await cli('tags', 'digest', 'acme/app:stable')).stdout, `${two}\n`)
  assert.match((await cli('tags', 'list', 'acme/app')).stdout, /^stable /m)
  assert.match((await cli('tags', 'acme/app')).stdout, /^stable /m)

  const kept = await cli('tags', 'delete', 'acme/app:stable')
  assert.equal(kept.code, 64)
  assert.match(kept.stderr, new RegExp(`would delete the tag stable of acme/app, which has the digest ${two}.*--yes`))
  assert.equal((await cli('tags', 'delete', 'acme/app:stable', '--yes')).code, 0)
  const { stdout } = await cli('tags', 'history', 'acme/app:stable')
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

test('updates a tag only if it has the expected digest', async () => {
  const { pinfold, one, two, cli } = await scene()
  await using _ = pinfold
  const stale = await cli('tags', 'update', 'acme/app:1.0', two, '--if', two)
  assert.deepEqual([stale.code, stale.stdout], [1, ''])
  assert.match(
    stale.stderr,
    new RegExp(`acme/app:1.0 was not updated: it has the digest ${one} now\\n.*pinfold tags history`),
  )
  assert.equal((await cli('tags', 'digest', 'acme/app:1.0')).stdout, `${one}\n`)
  const moved = await cli('tags', 'update', 'acme/app:1.0', two, '--if', one)
  assert.equal(moved.code, 0, moved.stderr)
  assert.equal((await cli('tags', 'digest', 'acme/app:1.0')).stdout, `${two}\n`)
  assert.equal((await cli('tags', 'update', 'acme/app:1.0', two, '--if', 'latest')).code, 64)
})

test('restores a former digest with a reason, unless the tag was updated meanwhile', async () => {
  const { pinfold, one, two, cli } = await scene()
  await using _ = pinfold
  assert.equal((await cli('tags', 'update', 'acme/app:1.0', two)).code, 0)
  const bare = await cli('tags', 'restore', 'acme/app:1.0', one)
  assert.equal(bare.code, 64)
  assert.match(bare.stderr, /--reason TEXT/)
  const stale = await cli('tags', 'restore', 'acme/app:1.0', one, '--reason', 'broken', '--if', one)
  assert.match(stale.stderr, new RegExp(`acme/app:1.0 was not updated: it has the digest ${two} now`))
  const restored = await cli('tags', 'restore', 'acme/app:1.0', one, '--reason', 'broken')
  assert.deepEqual([restored.code, restored.stdout], [0, `acme/app:1.0 ${one}\n`], restored.stderr)
  assert.match((await cli('tags', 'history', 'acme/app:1.0')).stdout, /restored: broken/)
})

test('the history shows the name of the updating member if the caller can see members', async () => {
  const { pinfold, org, two, cli } = await scene()
  await using _ = pinfold
  const bot = await pinfold.seed.member(org, roleUids.push)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(bot.uid) }
  const moved = await run(['tags', 'update', 'acme/app:1.0', two], { env })
  assert.equal(moved.code, 0, moved.stderr)
  assert.match((await cli('tags', 'history', 'acme/app:1.0')).stdout, new RegExp(` {2}api ${bot.name}\\n`))
})

test('errors about an existing, a missing and an unknown tag contain the next command', async () => {
  const { pinfold, two, cli } = await scene()
  await using _ = pinfold
  const wrong: [string[], RegExp][] = [
    [
      ['tags', 'create', 'acme/app:1.0', two],
      /acme\/app:1\.0 already exists, with the digest sha256:.*\n.*pinfold tags update acme\/app:1\.0 DIGEST/,
    ],
    [['tags', 'update', 'acme/app:2.0', two], /acme\/app has no tag 2\.0\n.*pinfold tags list acme\/app/],
    [['tags', 'digest', 'acme/app:2.0'], /acme\/app has no tag 2\.0/],
    [['tags', 'create', 'acme/app:3.0', `sha256:${'0'.repeat(64)}`], /does not have the manifest sha256:0000/],
    [['tags', 'history', 'acme/app:2.0'], /acme\/app has never had a tag 2\.0\n.*pinfold tags list acme\/app/],
    [
      ['tags', 'history', 'acme/app', '--digest', `sha256:${'0'.repeat(64)}`],
      /no tag of acme\/app has ever had the digest sha256:000/,
    ],
  ]
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await cli(...args)
    assert.deepEqual([code, stdout], [1, ''], args.join(' '))
    assert.match(stderr, message)
  }
  assert.equal((await cli('tags', 'digest', 'acme/app')).code, 64)
})

test('creates, describes, updates and deletes repositories by path', async () => {
  const { pinfold, cli } = await scene()
  await using _ = pinfold
  assert.match(
    (await cli('repos', 'create', 'acme/shop', '--description', 'Sells')).stdout,
    /^repository +acme\/shop$/m,
  )
  assert.equal((await cli('repos', 'update', 'acme/shop', '--description', 'Sells it')).code, 0)
  assert.equal(JSON.parse((await cli('repos', 'describe', 'acme/shop', '-o', 'json')).stdout).description, 'Sells it')
  assert.equal((await cli('repos', 'list', '--in', 'acme', '-o', 'terse')).stdout, 'acme/app\nacme/shop\n')
  assert.equal((await cli('repos', 'delete', 'acme/shop')).code, 0)
  assert.equal((await cli('repos', 'list', '--name', 'shop', '-o', 'terse')).stdout, '')
  const nowhere = await cli('repos', 'create', 'shop')
  assert.equal(nowhere.code, 64)
  assert.match(nowhere.stderr, /give ORG\/NAME or ORG\/FOLDER\/NAME/)
})
