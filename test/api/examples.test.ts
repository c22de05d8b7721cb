// Runs the examples of the API reference again: each must return the documented response.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { untried } from '../reference/calls.ts'
import { type Example, type Examples, runCalls, servedMethods, shortName } from '../reference/run-calls.ts'

const howTo = 'bin/pinfold-node test/reference/record.ts && npm run gen'
const recorded = JSON.parse(readFileSync(new URL('../data/examples.json', import.meta.url), 'utf8')) as Examples
let fresh: Examples

before(async () => {
  fresh = await runCalls()
})

/** Each field by path, with the type of its value. All elements of a list share one path. */
function shapeOf(value: unknown, path = '', into = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const one of value) shapeOf(one, `${path}[]`, into)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) shapeOf(member, `${path}.${key}`, into)
  } else into.add(`${path}: ${value === null ? 'null' : typeof value}`)
  return into
}

/** The first list element may differ and have fewer fields. All other fields must be equal. */
function differences(old: Example, now: Example): string[] {
  const [before, after] = [shapeOf(old.response), shapeOf(now.response)]
  const inLists = (member: string) => /\[\]|: null$/.test(member)
  // This field exists only while an event waits.
  const comesAndGoes = (member: string) => member.endsWith('.behindTime: string')
  const changed = [...before.symmetricDifference(after)].filter((one) => !inLists(one) && !comesAndGoes(one))
  const path = (one: Example) => one.path.replaceAll(/[0-9a-f]{16,}/g, '…')
  const asked = old.verb === now.verb && path(old) === path(now) ? [] : [`asked as ${now.verb} ${path(now)}`]
  const status = old.status === now.status ? [] : [`status ${now.status}`]
  return [...asked, ...status, ...changed]
}

test('each served method has an example', () => {
  const named = Object.keys(recorded).map(shortName)
  assert.deepEqual(
    servedMethods().filter((method) => !named.includes(method) && !untried.includes(method)),
    [],
    `a line in test/reference/calls.ts for each, then ${howTo}`,
  )
})

test('each example returns the documented response', () => {
  const changed = Object.entries(recorded).flatMap(([method, example]) => {
    const now = fresh[method]
    const found = now ? differences(example, now) : ['is not made any more']
    return found.map((one) => `${method}: ${one}`)
  })
  assert.deepEqual(changed, [], howTo)
  assert.deepEqual(Object.keys(recorded).sort(), Object.keys(fresh).sort(), howTo)
})

test('no example contains a secret or a real machine address', () => {
  const text = JSON.stringify(recorded)
  assert.doesNotMatch(text, /127\.0\.0\.1|localhost/)
  assert.doesNotMatch(text, /eyJ[\w-]{20,}\.[\w-]{20,}/)
})
