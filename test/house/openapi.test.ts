// Check that code generators can read the OpenAPI documents. Each generator shortens names in its own way. One of them treats
// names as equal that differ only in case, dots or underscores. It also invents names for objects without one, which may be
// taken.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

type Schema = { type?: string; properties?: Record<string, Schema> } & Record<string, unknown>
type Operation = {
  operationId: string
  summary?: string
  tags?: string[]
  parameters: { name: string; in: string }[]
}
type Document = {
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = globSync('gen/openapi*.json', { cwd: root })

/** Form of a name in which names are equal if a generator could confuse them. */
function clashes(names: readonly string[]): string[][] {
  const plain = (name: string) => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase()
  return Object.values(Object.groupBy(names, plain) as Record<string, string[]>).filter((same) => same.length > 1)
}

/** Objects inside of a schema that have members but no name of their own. */
function nameless(schema: unknown, at: string, isTop = true): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { type } = schema as Schema
  const own = !isTop && type === 'object' ? [at] : []
  return [...own, ...Object.entries(schema).flatMap(([key, value]) => nameless(value, `${at}.${key}`, false))]
}

for (const file of files) {
  const document = JSON.parse(readFileSync(join(root, file), 'utf8')) as Document
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))

  test(`${file}: every operation has a unique id, a short summary and a tag`, () => {
    assert.deepEqual(clashes(operations.map(({ operationId }) => operationId)), [])
    const tags = document.tags.map(({ name }) => name)
    assert.deepEqual(clashes(tags), [])
    for (const { operationId, summary = '', tags: own = [] } of operations) {
      assert.ok(own.length > 0 && own.every((tag) => tags.includes(tag)), `${operationId} has no tag that is described`)
      assert.match(
        summary,
        /^[A-Z].{5,119}$/,
        `the first sentence of ${operationId}'s comment is no summary: ${summary}`,
      )
      assert.doesNotMatch(summary, /[.;:]$/, operationId)
    }
  })

  test(`${file}: no generator confuses the names of schemas, members and parameters`, () => {
    assert.deepEqual(clashes(Object.keys(document.components.schemas)), [])
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      assert.deepEqual(clashes(Object.keys(schema.properties ?? {})), [], name)
      assert.deepEqual(nameless(schema, name), [], `a generator makes up a name for what has none`)
    }
    assert.deepEqual(nameless(document.paths, 'paths'), [])
    for (const { operationId, parameters } of operations) {
      assert.deepEqual(clashes(parameters.map(({ name }) => name)), [], operationId)
    }
  })

  test(`${file}: parameters are in camelCase, and descriptions spell names as JSON does`, () => {
    const parameters = operations.flatMap((operation) => operation.parameters).filter((one) => one.in !== 'header')
    for (const { name } of parameters) assert.match(name, /^[a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*$/)

    const members = Object.values(document.components.schemas).flatMap(({ properties = {} }) => Object.keys(properties))
    const names = [...parameters.map(({ name }) => name), ...members].filter((name) => /[A-Z]/.test(name))
    const snake = new Set(names.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)))
    const quoted = [...JSON.stringify(document).matchAll(/`([a-z.]+(?:_[a-z.]+)+)(?: asc| desc)?`/g)]
    const example = 'page_size' // The description of the document, which says that the snake_case form is accepted too.
    const mentioned = quoted.map((match) => match[1]!).filter((name) => snake.has(name) && name !== example)
    assert.deepEqual(mentioned, [])
  })
}
