import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formerNames, hints, replaced } from '#cli/former-names.ts'
import type { CommandTable, Options, Terminal } from '#cli/framework/command.ts'
import { runProgram } from '#cli/framework/program.ts'
import { summaries } from '#cli/summaries.ts'
import { run, runProcess } from '../support/process.ts'

test('each former command shows the help of the current command, with a warning', async () => {
  for (const [former, current] of Object.entries(formerNames)) {
    const [then, now] = [await run([...former.split(' '), '--help']), await run([...current.split(' '), '--help'])]
    assert.deepEqual([then.code, then.stdout], [0, now.stdout], former)
    assert.equal(then.stderr, `pinfold: pinfold ${former} is deprecated; use pinfold ${current}\n`)
    assert.equal(now.stderr, '', current)
    assert.ok(Object.hasOwn(summaries, current), current)
  }
})

test('commands with changed arguments keep their former name, which no help lists', async () => {
  for (const former of Object.keys(replaced)) {
    const words = former.split(' ')
    const { code, stdout } = await run([...words, '--help'])
    assert.equal(code, 0, former)
    assert.match(stdout, new RegExp(`^Usage: pinfold ${former} `))
    const above = await run([...words.slice(0, -1), '--help'])
    if (words[0] !== 'iam') assert.doesNotMatch(above.stdout, new RegExp(`^  ${words.at(-1)}( |$)`, 'm'))
  }
})

test('a command name of another program exits with 64 and a suggestion', async () => {
  for (const [word, advice] of Object.entries(hints)) {
    const { code, stdout, stderr } = await run([word, 'acme/app'])
    assert.deepEqual([code, stdout], [64, ''])
    assert.equal(stderr, `pinfold: there is no command pinfold ${word}\npinfold: ${advice}\n`)
  }
  assert.match((await run(['repo', 'list'])).stderr, /Did you mean repos\?/)
  assert.match((await run(['tags', 'lst', 'acme/app'])).stderr, /.+/)
})

test('help before a command shows the help of the command, also for a former command with a warning', async () => {
  for (const path of ['tags list', 'server keys rotate-master']) {
    assert.deepEqual(await run(['help', ...path.split(' ')]), await run([...path.split(' '), '--help']))
  }
  const former = await run(['help', 'iam', 'folders', 'list'])
  assert.deepEqual([former.code, former.stdout], [0, (await run(['folders', 'list', '--help'])).stdout])
  assert.equal(former.stderr, 'pinfold: pinfold iam folders is deprecated; use pinfold folders\n')
  assert.match((await run(['help', 'ls'])).stderr, /pinfold images list lists images/)
})

test('completion completes after a former command without a warning, and does not offer former commands', async () => {
  const { stdout, stderr } = await runProcess(['complete', '--', 'iam', 'role-bindings', 'up'])
  assert.match(stdout, /^update\t/)
  assert.equal(stderr, '')
  assert.doesNotMatch((await runProcess(['complete', '--', ''])).stdout, /^(iam|verify)\t/m)
})

test('suggestions and former names refer only to existing commands', () => {
  for (const text of [...Object.values(hints), ...Object.values(replaced).map((path) => `pinfold ${path}`)]) {
    for (const [, words = ''] of text.matchAll(/\bpinfold ((?:[a-z-]+ ?)+)/g)) {
      const parts = words.trim().split(' ')
      assert.ok(
        parts.some((_, i) => Object.hasOwn(summaries, parts.slice(0, i + 1).join(' '))),
        words,
      )
    }
  }
})

/** Runs one command with an argument and options that have former names. */
async function parse(...args: string[]) {
  const seen: { options?: Options; said: string[] } = { said: [] }
  const terminal: Terminal = {
    env: {},
    input: async () => '',
    print() {},
    say: (line) => seen.said.push(line),
    untilSignaled: async () => {},
    preferred: async () => ({ parent: 'preferred' }),
  }
  const table: CommandTable = {
    summaries: { members: 'Members', 'members add': 'Add a member' },
    headings: {},
    usual: {},
    former: { 'iam role-bindings create': 'members add' },
    replaced: {},
    hints: {},
    load: async () => ({
      arguments: [{ name: '<identity>', summary: 'The identity', former: '--identity <identity>' }],
      options: [
        {
          flags: '--in <group>',
          summary: 'The group',
          required: true,
          former: ['--parent <group>'],
          default: 'parent',
        },
        { flags: '--from <path>', summary: 'Another', formerArgument: 'path' },
        { flags: '--tag <tag>', summary: 'Tags', repeat: true, former: ['--tags <tag>'] },
      ],
      async run(_, options) {
        seen.options = options
        return 0
      },
    }),
  }
  let code: number | string
  try {
    code = await runProgram(table, '1', terminal, ['node', 'pinfold', ...args])
  } catch (error) {
    code = (error as Error).message
  }
  return { code, ...seen }
}

test('an option accepts the value of its former option or argument, with a warning', async () => {
  const now = await parse('members', 'add', 'ci', '--in', 'acme', '--from', 'x', '--tag', 'a', '--tag', 'b')
  const expected = { identity: 'ci', in: 'acme', from: 'x', tag: ['a', 'b'] }
  assert.deepEqual([now.code, now.options, now.said], [0, expected, []])
  const former = ['--identity', 'ci', '--parent', 'acme', '--tags', 'a', '--tags', 'b']
  const then = await parse('iam', 'role-bindings', 'create', ...former)
  const { from: _, ...withoutFrom } = expected
  assert.deepEqual([then.code, then.options], [0, withoutFrom])
  assert.deepEqual(then.said, [
    'pinfold: pinfold iam role-bindings create is deprecated; use pinfold members add',
    'pinfold: --identity is deprecated; use the argument <identity>',
    'pinfold: --parent is deprecated; use --in',
    'pinfold: --tags is deprecated; use --tag',
  ])
  const positional = await parse('members', 'add', 'ci', 'x', '--in', 'acme')
  assert.equal(positional.options?.from, 'x')
  assert.deepEqual(positional.said, ['pinfold: the argument <path> is deprecated; use --from'])
})

test("the user's default counts for a current option, and less than a former one", async () => {
  assert.equal((await parse('members', 'add', 'ci')).options?.in, 'preferred')
  assert.equal((await parse('members', 'add', 'ci', '--parent', 'acme')).options?.in, 'acme')
})

test('refuses a missing value, or a value given with both the former and the current name', async () => {
  assert.equal((await parse('members', 'add', '--in', 'acme')).code, "missing required argument 'identity'")
  const both = await parse('members', 'add', 'ci', '--in', 'acme', '--parent', 'acme')
  assert.equal(both.code, '--in and --parent have the same meaning; use only --in')
  const twice = await parse('members', 'add', 'ci', '--identity', 'ci', '--in', 'acme')
  assert.equal(twice.code, 'give identity once, without --identity')
})
