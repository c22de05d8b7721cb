import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, apiCommand, printAnswer } from './api-pages.ts'
import { usageError } from './cli-error.ts'
import type { Options, Terminal } from './command.ts'

function printed(options: Options, answer?: Answer): { code: number; out: string[]; err: string[] } {
  const [out, err]: [string[], string[]] = [[], []]
  const terminal = { print: (line) => out.push(line), say: (line) => err.push(line), env: {} } as Partial<Terminal>
  return { code: printAnswer(terminal as Terminal, options, answer), out, err }
}

const answer: Answer = { json: { a: 1 }, head: ['A', 'B'], rows: [['1', '2']], below: 'end', more: true, code: 1 }

test('prints rows below their heading, then the line below, and a note that there are more', () => {
  const more = 'pinfold: the list has more items; a larger --limit shows them'
  const { code, out, err } = printed({}, { ...answer, notes: (say) => say('note') })
  assert.deepEqual([code, out, err], [1, ['A  B', '1  2', 'end'], [more, 'note']])
})

test('prints only JSON for -o json, on one line if it is dense', () => {
  assert.deepEqual(printed({ output: 'json' }, answer).out, ['{\n  "a": 1\n}'])
  assert.deepEqual(printed({ output: 'json' }, { ...answer, dense: true }).out, ['{"a":1}'])
})

test('prints text instead of rows, without control characters', () => {
  assert.deepEqual(printed({}, { ...answer, text: ['one\u001b', 'two'] }).out, ['one', 'two'])
  assert.deepEqual(printed({}), { code: 0, out: [], err: [] })
})

test('an option of the command replaces the option of the caller with the same name', () => {
  const own = { flags: '--identity <identity>', summary: 'Of whom' }
  const { options } = apiCommand({ options: [own], run: async () => undefined })
  assert.deepEqual(
    options.filter(({ flags }) => flags.startsWith('--identity ')),
    [own],
  )
  assert.ok(options.some(({ flags }) => flags.startsWith('--api ')))
})

test('refuses wrong options before it looks who calls', async () => {
  const { run } = apiCommand({
    options: [],
    check() {
      throw usageError('wrong')
    },
    run: async () => assert.fail('it has run'),
  })
  await assert.rejects(run({ env: {} } as Terminal, {}), { message: 'wrong', exitCode: 64 })
})
