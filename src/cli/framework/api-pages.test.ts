import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, apiCommand, printAnswer } from './api-pages.ts'
import { listPages } from './api-reader.ts'
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

/** API list of the numbers 0 to 499. The page token is the next number. */
function numbers() {
  const asked: (string | null)[] = []
  const get = async (path: string) => {
    const query = new URLSearchParams(path.slice(path.indexOf('?')))
    asked.push(query.get('skip'))
    const from = Number(query.get('page_token') ?? 0) + Number(query.get('skip') ?? 0)
    const end = Math.min(500, from + Number(query.get('page_size')))
    const items = Array.from({ length: end - from }, (_, i) => from + i)
    return { items, nextPageToken: end === 500 ? '' : String(end) }
  }
  return { get, asked }
}

const list = { path: '/list', member: 'items', query: {} }

test('asks the server to skip items only in the first request', async () => {
  const { get, asked } = numbers()
  const { items, more } = await listPages<number>(get, { ...list, skip: 10, limit: 300 })
  assert.deepEqual([items[0], items.at(-1), items.length, more], [10, 309, 300, true])
  assert.deepEqual(asked, ['10', null])
})

test('skips and limits only items that the filter of the command accepts', async () => {
  const { get, asked } = numbers()
  const keep = (number: number) => number % 100 === 99
  const listed = async (skip: number) => {
    const { items, more } = await listPages<number>(get, { ...list, skip, limit: 2, keep })
    return { items, more }
  }
  const some = await listed(1)
  assert.deepEqual(some, { items: [199, 299], more: true })
  const rest = await listed(3)
  assert.deepEqual(rest, { items: [399, 499], more: false })
  const none = await listed(9)
  assert.deepEqual(none, { items: [], more: false })
  assert.ok(asked.every((skip) => skip === null))
})
