// Calls that start several promises at once, such as `Promise.all([read(), count()])`. If a later element throws while the array is
// built, nothing handles a rejection of an earlier one (decision 173).
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { type AnyNode, type CallExpression, parse } from 'acorn'
import { project } from '../support/process.ts'

const files = globSync('src/**/*.ts', { cwd: project }).filter((file) => !file.endsWith('.test.ts'))

type Module = { tree: AnyNode; asyncNames: Set<string>; imports: Map<string, { from: string; name: string }> }
const modules = new Map<string, Module>()

function children(node: AnyNode): AnyNode[] {
  const values = Object.values(node).flat() as (AnyNode | undefined | null)[]
  return values.filter((value): value is AnyNode => typeof value?.type === 'string')
}

function* nodesOf(node: AnyNode): Generator<AnyNode> {
  yield node
  for (const child of children(node)) yield* nodesOf(child)
}

/** Functions that a file defines as async, and names that it imports. `name` is empty for a namespace. */
function moduleOf(file: string): Module {
  const known = modules.get(file)
  if (known) return known
  const code = stripTypeScriptTypes(readFileSync(join(project, file), 'utf8'))
  const tree = parse(code, { ecmaVersion: 'latest', sourceType: 'module' }) as AnyNode
  const read: Module = { tree, asyncNames: new Set(), imports: new Map() }
  for (const node of nodesOf(tree)) {
    if (node.type === 'FunctionDeclaration' && node.async && node.id) read.asyncNames.add(node.id.name)
    if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier' && isAsync(node.init)) {
      read.asyncNames.add(node.id.name)
    }
    if (node.type !== 'ImportDeclaration') continue
    for (const one of node.specifiers) {
      const name = one.type === 'ImportSpecifier' && one.imported.type === 'Identifier' ? one.imported.name : ''
      read.imports.set(one.local.name, { from: pathOf(file, String(node.source.value)), name })
    }
  }
  modules.set(file, read)
  return read
}

const isAsync = (node: AnyNode | null | undefined): boolean =>
  (node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression') && node.async

/** Path of an imported file in the project. The name of a package is returned unchanged. */
function pathOf(file: string, source: string): string {
  if (source.startsWith('#')) return `src/${source.slice(1)}`
  return source.startsWith('.') ? relative(project, join(project, dirname(file), source)) : source
}

/** Functions of Node that return a promise and do not throw for the arguments that we pass. */
const ofNode = ['node:timers/promises', 'node:events']

function isAsyncName(file: string, name: string): boolean {
  const { asyncNames, imports } = moduleOf(file)
  const imported = imports.get(name)
  if (!imported) return asyncNames.has(name)
  return imported.from.startsWith('src/') ? isAsyncName(imported.from, imported.name) : ofNode.includes(imported.from)
}

/** True if a call of this function returns a promise in any case, and does not throw. */
function isAsyncFunction(file: string, callee: AnyNode): boolean {
  if (callee.type === 'Identifier') return isAsyncName(file, callee.name)
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return isAsync(callee)
  const { object, property } = callee
  if (['then', 'catch', 'finally'].includes(property.name)) return isSafe(file, object)
  if (object.type === 'Identifier' && object.name === 'Promise') return true
  const namespace = object.type === 'Identifier' && moduleOf(file).imports.get(object.name)
  return namespace && namespace.name === '' ? isAsyncName(namespace.from, property.name) : false
}

/** True if evaluating the expression calls a function that may throw. */
function hasCall(node: AnyNode): boolean {
  if (node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression') return false
  if (node.type === 'AwaitExpression' || (node.type === 'CallExpression' && !isMath(node))) return true
  return children(node).some(hasCall)
}

const isMath = ({ callee }: CallExpression): boolean =>
  callee.type === 'MemberExpression' && callee.object.type === 'Identifier' && callee.object.name === 'Math'

/** True if the expression starts at most one promise, and cannot throw. */
function isSafe(file: string, node: AnyNode): boolean {
  if (node.type === 'ConditionalExpression') return isSafe(file, node.consequent) && isSafe(file, node.alternate)
  if (node.type !== 'CallExpression') return !hasCall(node)
  return isAsyncFunction(file, node.callee) && !node.arguments.some(hasCall)
}

const combines = (node: AnyNode): node is CallExpression =>
  node.type === 'CallExpression' &&
  node.callee.type === 'MemberExpression' &&
  node.callee.object.type === 'Identifier' &&
  node.callee.object.name === 'Promise' &&
  ['all', 'allSettled', 'any', 'race'].includes((node.callee.property as { name: string }).name)

/** True if a promise in the argument of `Promise.all` is started after another one, and starting it can throw. */
function unsafeIn(file: string, argument: AnyNode): boolean {
  if (argument.type === 'ArrayExpression') {
    // If the first element throws, no other one was started.
    return argument.elements.slice(1).some((one) => one !== null && !isSafe(file, one))
  }
  const isMap =
    argument.type === 'CallExpression' &&
    argument.callee.type === 'MemberExpression' &&
    argument.callee.property.type === 'Identifier' &&
    argument.callee.property.name === 'map'
  if (!isMap) return false
  const [each] = argument.arguments as AnyNode[]
  if (each?.type === 'ArrowFunctionExpression' && !each.async) return !isSafe(file, each.body)
  return !isAsync(each) && !isAsyncFunction(file, each!)
}

test('the check finds a call that can throw after a promise was started', () => {
  const isUnsafe = (code: string) => {
    const tree = parse(`Promise.all(${code})`, { ecmaVersion: 'latest' }) as AnyNode
    return unsafeIn('src/domains/iam/groups/list-nodes.ts', [...nodesOf(tree)].find(combines)!.arguments[0]!)
  }
  assert.ok(isUnsafe('[source.list(db), source.count(db)]'))
  assert.ok(isUnsafe('[listFrom(db), listFrom(toPage(db))]'))
  assert.ok(isUnsafe('all.map((one) => source.count(one))'))
  assert.ok(!isUnsafe('[source.list(db), listFrom(db), (async () => source.count(db))()]'))
  assert.ok(!isUnsafe('all.map(async (one) => source.count(one))'))
  assert.ok(!isUnsafe('all.map((one) => listFrom(one))'))
})

test('no promise is started beside a call that can throw before somebody handles the promise', () => {
  let seen = 0
  const found = files.flatMap((file) => {
    const text = readFileSync(join(project, file), 'utf8')
    if (!/\bPromise\.(?:all|allSettled|any|race)\(/.test(text)) return []
    const calls = [...nodesOf(moduleOf(file).tree)].filter(combines)
    seen += calls.length
    const unsafe = calls.filter((call) => unsafeIn(file, call.arguments[0]!))
    // Types are replaced by blanks, so positions are those of the file.
    return unsafe.map(
      ({ start, end }) => `${file}:${text.slice(0, start).split('\n').length} ${text.slice(start, end)}`,
    )
  })
  assert.ok(seen > 50)
  assert.deepEqual(found, [])
})
