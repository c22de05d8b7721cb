import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { CliError } from '../../src/cli/framework/cli-error.ts'
import { imagesDelete } from '../../src/cli/registry/images-delete.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { cleanEnv, program, run } from '../support/process.ts'
import { plantTag } from '../support/tags.ts'

async function scene(tags: readonly string[]) {
  const pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid
  const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid
  for (const tag of tags) await plantTag(pinfold, repo, tag, 'the same')
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const isThere = async () => (await pinfold.operator.get(`/registry/v2/repos/${repo}`)).status === 200
  return { pinfold, env, isThere, cli: (...args: string[]) => run(['repos', 'delete', ...args], { env }) }
}

/** The command at a terminal, where the user enters `answer`. */
async function atTerminal(env: Record<string, string>, answer: string) {
  const [printed, said, asked]: [string[], string[], string[]] = [[], [], []]
  const terminal = {
    env,
    input: async () => '',
    print: (line: string) => void printed.push(line),
    say: (line: string) => void said.push(line),
    ask: async (question: string) => {
      asked.push(question)
      return answer
    },
    untilSignaled: async () => {},
  }
  const code = await imagesDelete.run(terminal, { image: 'acme/app' }).catch((error) => {
    assert.ok(error instanceof CliError)
    said.push(error.message)
    return error.exitCode
  })
  return { code, printed, said, asked }
}

const historyOf = async ({ operator }: Pinfold) => (await operator.get('/registry/v2/deletedRepos')).body.deletedRepos

test('without a terminal, repos delete refuses a repository with content, and shows the content', async () => {
  const { pinfold, cli, isThere } = await scene(['1.0', '1.0-r0', 'latest', 'sha256-abc.sig'])
  await using _ = pinfold
  const refused = await cli('acme/app')
  assert.equal(refused.code, 64)
  assert.equal(refused.stdout, '')
  const held = '4 tags (1.0, 1.0-r0, latest, sha256-abc.sig) and 8 bytes in 1 manifest'
  assert.ok(refused.stderr.startsWith(`pinfold: nothing was deleted: acme/app has ${held}, `), refused.stderr)
  assert.match(refused.stderr, /; give --yes to delete it\n$/)
  assert.ok(await isThere())
  const missing = await cli('acme/nosuch', '--yes')
  assert.equal(missing.code, 1)
  const allowed = await cli('acme/nosuch', '--yes', '--allow-missing')
  assert.deepEqual([allowed.code, allowed.stdout, /\n./.test(allowed.stderr)], [0, '', false])

  const done = await cli('acme/app', '--yes')
  assert.deepEqual([done.code, done.stdout, done.stderr], [0, 'deleted acme/app\n', ''])
  assert.equal(await isThere(), false)
  assert.equal((await historyOf(pinfold))[0].path, 'acme/app')
})

test('at a terminal, repos delete asks for confirmation, and only yes deletes', async () => {
  const tags = Array.from({ length: 12 }, (_, i) => `v${10 + i}`)
  const { pinfold, env, isThere } = await scene(tags)
  await using _ = pinfold
  const held = `12 tags (${tags.slice(0, 10).join(', ')} and 2 more) and 8 bytes in 1 manifest`
  for (const answer of ['', 'n', 'acme/app', 'yes please']) {
    const kept = await atTerminal(env, answer)
    assert.deepEqual([kept.code, kept.printed, kept.asked.length], [1, [], 1], answer)
    const about = `acme/app has ${held}. Pulls will fail after the deletion; the history of the tags remains.`
    assert.deepEqual(kept.said, [about, 'nothing was deleted'])
    assert.ok(await isThere())
  }
  const gone = await atTerminal(env, ' Yes\n')
  assert.deepEqual([gone.code, gone.printed, gone.asked], [0, ['deleted acme/app'], ['Delete it? [y/N] ']])
  assert.equal(await isThere(), false)
})

test('repos delete deletes an empty repository without confirmation, and refuses a tag', async () => {
  const { pinfold, cli, isThere } = await scene([])
  await using _ = pinfold
  const tagged = await cli('acme/app:1.0', '--yes')
  const lines = [
    'nothing was deleted, because this command deletes whole repositories',
    'to delete one tag: pinfold tags delete acme/app:1.0',
    'to delete the repository: pinfold repos delete acme/app',
  ]
  assert.deepEqual([tagged.code, tagged.stderr], [64, lines.map((line) => `pinfold: ${line}\n`).join('')])
  assert.ok(await isThere())
  assert.equal((await cli('acme/app')).code, 0)
  assert.equal(await isThere(), false)
  assert.equal((await cli('acme/app', '--yes')).code, 1)
})

const noTerminal = spawnSync('script', ['--version']).error !== undefined && 'there is no script to make a terminal'

test('the program itself asks for confirmation at a real terminal', { skip: noTerminal }, async () => {
  const { pinfold, env, isThere } = await scene(['1.0'])
  await using _ = pinfold
  for (const [answer, code] of [['n\r', 1] as const, ['y\r', 0] as const]) {
    const command = `'${program}' repos delete acme/app`
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: cleanEnv(env), stdio: 'pipe' })
    let seen = ''
    child.stdout.on('data', (chunk: Buffer) => {
      const asked = seen.includes('[y/N]')
      seen += chunk
      if (!asked && seen.includes('[y/N]')) child.stdin.write(answer)
    })
    const [ended] = await once(child, 'close')
    assert.equal(ended, code, seen)
    assert.equal(await isThere(), code === 1)
  }
})
