import assert from 'node:assert/strict'
import { test } from 'node:test'
import { top } from '#lib/uid.ts'
import { capabilities, everyCapability, maskOf } from './capabilities.ts'
import type { Grants } from './grants.model.ts'
import { createRights, noRights } from './rights.ts'

const org = 'a'.repeat(40)
const other = 'b'.repeat(40)
const below = (uid: string, digit: string) => `${uid}/${digit.repeat(16)}`
const team = below(org, '1')
const project = below(team, '2')

// Bits 3, 58, 126 and 168 are in different 64-bit words, so an error in one word shows.
const [groupsList, repoList, termsList, repoAdmin] = [103, 1605, 2202, 1617] as const
const grants = (entries: Record<string, number[]>): Grants =>
  new Map(Object.entries(entries).map(([scope, numbers]) => [scope, maskOf(numbers)]))
const inOrg = below(org, 'f')

test('a grant applies to its group and below, not above or in sibling groups', () => {
  const rights = createRights({ identity: inOrg, grants: grants({ [team]: [repoList] }) })
  assert.equal(rights.holds(team, [repoList]), true)
  assert.equal(rights.holds(project, [repoList]), true)
  assert.equal(rights.holds(org, [repoList]), false)
  assert.equal(rights.holds(below(org, '3'), [repoList]), false)
  assert.equal(rights.holds(other, [repoList]), false)
  assert.deepEqual(rights.roots([repoList]), [team])
})

test('grants of the group and the groups above add up, and a request needs all its capabilities', () => {
  const rights = createRights({ identity: inOrg, grants: grants({ [org]: [groupsList], [team]: [repoAdmin] }) })
  assert.equal(rights.holds(project, [groupsList, repoAdmin]), true)
  assert.equal(rights.holds(project, [groupsList, repoAdmin, termsList]), false)
  assert.deepEqual(rights.roots([groupsList, repoAdmin]), [team])
  assert.deepEqual(rights.roots([groupsList]), [org])
})

test('an identity of a folder has no rights above the folder, even with a binding there', () => {
  const rights = createRights({
    identity: below(team, 'f'),
    grants: grants({ [org]: [repoList], [team]: [groupsList] }),
  })
  assert.equal(rights.holds(org, [repoList]), false)
  assert.equal(rights.holds(project, [repoList]), false)
  assert.equal(rights.holds(project, [groupsList]), true)
})

test('an identity without a parent can have bindings in several organizations', () => {
  const rights = createRights({ identity: 'c'.repeat(40), grants: grants({ [org]: [repoList], [other]: [repoList] }) })
  assert.deepEqual(rights.roots([repoList]), [org, other])
})

test('a narrowed token has rights only in its scope and below', () => {
  const bound = grants({ [org]: [groupsList, repoList] })
  const at = (narrowing: Grants) => createRights({ identity: inOrg, grants: bound, narrowing })

  assert.deepEqual(at(grants({ [team]: [repoList] })).roots([repoList]), [team])
  assert.equal(at(grants({ [team]: [repoList] })).holds(org, [repoList]), false)
  assert.equal(at(grants({ [team]: [repoList] })).holds(project, [groupsList]), false)
  assert.deepEqual(at(grants({ [top]: [repoList] })).roots([repoList]), [org])
  assert.deepEqual(at(new Map()).roots([repoList]), [])
})

test('a token never adds to the granted rights', () => {
  const rights = createRights({
    identity: inOrg,
    grants: grants({ [team]: [repoList] }),
    narrowing: grants({ [top]: [...capabilities.keys()] }),
  })
  assert.equal(rights.holds(org, [repoList]), false)
  assert.equal(rights.holds(team, [groupsList]), false)
})

test('the operator holds each capability everywhere, unless the token narrows them', () => {
  const operator = { identity: 'd'.repeat(40), grants: new Map(), operator: true }
  assert.equal(createRights(operator).holds(other, capabilities.keys()), true)
  assert.deepEqual(createRights(operator).roots(capabilities.keys()), [top])
  assert.deepEqual(createRights({ ...operator, narrowing: grants({ [team]: [repoList] }) }).roots([repoList]), [team])
})

test('no caller holds a capability that the contract does not declare', () => {
  const operator = createRights({ identity: 'd'.repeat(40), grants: new Map(), operator: true })
  for (const numbers of [[0], [999_999], [repoList, 999_999]]) {
    assert.equal(operator.holds(org, numbers), false)
    assert.deepEqual(operator.roots(numbers), [])
  }
})

test('a caller without rights holds no capability anywhere', () => {
  assert.equal(noRights.holds(org, [repoList]), false)
  assert.deepEqual(noRights.roots([repoList]), [])
})

test('each capability has its own bit', () => {
  const masks = [...capabilities.values()].map(({ mask }) => mask)
  assert.equal(new Set(masks).size, masks.length)
  assert.equal(
    masks.reduce((all, mask) => all | mask, 0n),
    everyCapability,
  )
})

const seed = 20_260_801
const worlds = 100_000

test(`in ${worlds} random hierarchies, the decision equals a simple check of all bindings`, () => {
  const random = mulberry32(seed)
  const seen = { held: 0, refused: 0, several: 0 }
  for (let i = 0; i < worlds; i++) {
    const world = randomWorld(random)
    const { identity, bindings, narrowing, operator } = world
    const rights = createRights({
      identity,
      operator,
      grants: grantsOf(bindings),
      narrowing: narrowing && grantsOf(narrowing),
    })
    const wanted = some(random, vocabulary, 2)
    const context = () => JSON.stringify({ seed, world: i, wanted, ...world })

    const held = world.nodes.filter((node) => {
      const expected = oracle(world, node, wanted)
      assert.equal(rights.holds(node, wanted), expected, `${node} of ${context()}`)
      return expected
    })
    const highest = held.filter((node) => !held.some((above) => above !== node && strictlyBelow(node, above)))
    assert.deepEqual(rights.roots(wanted).sort(), highest.sort(), context())
    seen[held.length > 0 ? 'held' : 'refused']++
    if (highest.length > 1) seen.several++
  }
  // A generator that makes only one kind of hierarchy would prove nothing.
  for (const [kind, count] of Object.entries(seen)) assert.ok(count > worlds / 100, `${kind}: ${count}`)
})

type Binding = { scope: string; numbers: number[] }
type World = {
  nodes: string[]
  identity: string
  bindings: Binding[]
  narrowing: Binding[] | undefined
  operator: boolean
}

const unknown = 424_242
const known = [groupsList, repoList, termsList, repoAdmin]
const vocabulary = [...known, ...known, unknown]

/** Compares each binding as strings: without masks, maps, or code of the implementation. */
function oracle({ identity, bindings, narrowing, operator }: World, node: string, wanted: number[]): boolean {
  const covers = (scope: string) => scope === top || node === scope || strictlyBelow(node, scope)
  return wanted.every((number) => {
    if (number === unknown) return false
    const slash = identity.lastIndexOf('/')
    const home = slash < 0 ? top : identity.slice(0, slash)
    const bound = bindings.some(
      ({ scope, numbers }) =>
        numbers.includes(number) && covers(scope) && (home === top || scope === home || strictlyBelow(scope, home)),
    )
    const allowed = narrowing?.some(({ scope, numbers }) => numbers.includes(number) && covers(scope)) ?? true
    return (operator || bound) && allowed
  })
}

function strictlyBelow(node: string, above: string): boolean {
  return above === top ? node !== top : node.startsWith(`${above}/`)
}

function randomWorld(random: () => number): World {
  const nodes = [top, org, other]
  for (let i = Math.floor(random() * 7); i > 0; i--) {
    const parent = pick(random, nodes.slice(1))
    const child = below(parent, pick(random, ['0', '9', 'a', 'f']))
    if (!nodes.includes(child)) nodes.push(child)
  }
  // Bindings are on groups, not on the root. A token can also name the root.
  const bindings = (from: string[], most: number): Binding[] =>
    Array.from({ length: Math.floor(random() * (most + 1)) }, () => ({
      scope: pick(random, from),
      numbers: some(random, known, 3),
    }))
  const home = random() < 0.4 ? top : pick(random, nodes)
  return {
    nodes,
    identity: home === top ? 'e'.repeat(40) : below(home, 'e'),
    bindings: bindings(nodes.slice(1), 7),
    narrowing: random() < 0.5 ? bindings(nodes, 3) : undefined,
    operator: random() < 0.1,
  }
}

function grantsOf(bindings: Binding[]): Grants {
  const found = new Map<string, bigint>()
  for (const { scope, numbers } of bindings) found.set(scope, (found.get(scope) ?? 0n) | maskOf(numbers))
  return found
}

function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!
}

/** Returns up to `most` values, with repetitions, or no values. */
function some<T>(random: () => number, from: readonly T[], most: number): T[] {
  return Array.from({ length: Math.floor(random() * (most + 1)) }, () => pick(random, from))
}

function mulberry32(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
