// Static check for regular expressions whose time grows faster than the length of a text that does not match.
import { type AST, RegExpParser } from '@eslint-community/regexpp'

/**
 * Returns the reason why a match may take more than linear time, or undefined if it cannot. Treats word boundaries and lookaround
 * as always true, and repetitions of more than a hundred as endless. So a linear expression is sometimes rejected. The expression
 * becomes a position automaton (Glushkov) with a state for each character that it reads. Time is linear if the number of ways
 * through one text to a state is bounded (Weber and Seidl, "On the degree of ambiguity of finite automata").
 */
export function problemOf({ source, flags }: { source: string; flags: string }): string | undefined {
  const parsed = new RegExpParser().parsePattern(source, 0, source.length, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  })
  return problemIn(parsed.alternatives, flags, !flags.includes('y'))
}

/** A lookaround is tried at its position. The whole expression is tried wherever the text may begin to match (`searches`). */
function problemIn(alternatives: readonly AST.Alternative[], flags: string, searches: boolean): string | undefined {
  const automaton = new Automaton(flags)
  const whole = automaton.anyOf(alternatives)
  if (automaton.problem) return automaton.problem
  const isSearched = searches && (whole.first.length > 0 || whole.isNullable)
  if (isSearched && automaton.hasLongLookaround) return 'a lookaround of any length is tried at each place of the text'
  // The first match ends the search.
  if (!automaton.hasCondition) automaton.endAt(whole.last)
  if (isSearched) automaton.searchFrom(whole.first)
  return automaton.ambiguity()
}

/** Part of an expression, with its first and last states. `anchored` states match only at the beginning of the text. */
type Part = {
  first: readonly number[]
  anchoredFirst: readonly number[]
  last: readonly number[]
  isNullable: boolean
  isAnchoredNullable: boolean
}
const empty: Part = { first: [], anchoredFirst: [], last: [], isNullable: true, isAnchoredNullable: false }

/** Sample characters that represent all others. Two character classes are equal if they contain the same samples. */
const alphabet = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  '\xa0',
  'é',
  'ſ',
  '٣',
  '中',
  '\u2028',
]
const everything = (1n << BigInt(alphabet.length)) - 1n
const lineBreak = 1n << BigInt(alphabet.indexOf('\n'))
/** Repetitions above this number count as endless. Repetitions up to it are analyzed as two. */
const longRepetition = 100

class Automaton {
  problem: string | undefined
  /** True if a part reads no character and can fail. Then a match may fail after its last character was read. */
  hasCondition = false
  hasLongLookaround = false
  readonly #flags: string
  readonly #reads: bigint[] = []
  readonly #next: Set<number>[] = []

  constructor(flags: string) {
    this.#flags = flags
  }

  anyOf(alternatives: readonly AST.Alternative[]): Part {
    const parts = alternatives.map(({ elements }) => this.#allOf(elements.map((one) => this.#partOf(one))))
    return {
      first: parts.flatMap(({ first }) => first),
      anchoredFirst: parts.flatMap(({ anchoredFirst }) => anchoredFirst),
      last: parts.flatMap(({ last }) => last),
      isNullable: parts.some(({ isNullable }) => isNullable),
      isAnchoredNullable: parts.some(({ isAnchoredNullable }) => isAnchoredNullable),
    }
  }

  /** Goes on from none of the states in which the expression has matched, or a global one only where it may come to no end. */
  endAt(last: readonly number[]): void {
    const ends = new Set(last)
    const isEndless = (next: number): boolean => {
      if (ends.has(next)) return false
      const reached = this.#reachedFrom(next, ends)
      return [next, ...reached].some((state) => this.#reachedFrom(state, ends).has(state))
    }
    for (const state of last) {
      for (const next of this.#next[state]!) {
        if (!this.#flags.includes('g') || !isEndless(next)) this.#next[state]!.delete(next)
      }
    }
  }

  /** Adds a state that reads any text, for the search of the position where the match begins. */
  searchFrom(first: readonly number[]): void {
    const start = this.#state(everything)
    for (const next of [start, ...first]) this.#next[start]!.add(next)
  }

  ambiguity(): string | undefined {
    const loops = this.#loops()
    if (loops.some((loop) => this.#isExponential(loop))) return 'a repetition can read the same text in two ways'
    for (const one of loops) {
      for (const other of loops) {
        if (one !== other && this.#isQuadratic(one, other)) return 'two repetitions can share the same text'
      }
    }
    return undefined
  }

  #state(reads: bigint): number {
    this.#next.push(new Set())
    return this.#reads.push(reads) - 1
  }

  #reading(reads: bigint): Part {
    const state = this.#state(reads)
    return { ...empty, first: [state], last: [state], isNullable: false }
  }

  #partOf(element: AST.Element): Part {
    switch (element.type) {
      case 'Group':
      case 'CapturingGroup':
        return this.anyOf(element.alternatives)
      case 'Quantifier':
        return this.#repeated(element)
      case 'Assertion':
        return this.#assertion(element)
      case 'Backreference':
        this.problem = 'it refers back to a group'
        return empty
      default:
        return this.#reading(this.#readBy(element.raw))
    }
  }

  #readBy(raw: string): bigint {
    const one = new RegExp(`^${raw}$`, this.#flags.replace(/[gmy]/g, ''))
    return alphabet.reduce((all, character, i) => (one.test(character) ? all | (1n << BigInt(i)) : all), 0n)
  }

  #assertion(element: AST.Assertion): Part {
    if (element.kind === 'start') {
      if (!this.#flags.includes('m')) return { ...empty, isNullable: false, isAnchoredNullable: true }
      return { ...this.#reading(lineBreak), isAnchoredNullable: true }
    }
    this.hasCondition = true
    if (element.kind === 'lookahead' || element.kind === 'lookbehind') {
      this.problem ??= problemIn(element.alternatives, this.#flags, false)
      this.hasLongLookaround ||= /[*+]|,\}/.test(element.raw)
    }
    return empty
  }

  #allOf(parts: readonly Part[]): Part {
    return parts.reduce((before, after) => {
      this.#connect(before.last, after.first)
      const { isNullable, isAnchoredNullable } = after
      return {
        first: [...before.first, ...(before.isNullable ? after.first : [])],
        anchoredFirst: [
          ...before.anchoredFirst,
          ...(before.isNullable ? after.anchoredFirst : []),
          ...(before.isAnchoredNullable ? [...after.first, ...after.anchoredFirst] : []),
        ],
        last: [...after.last, ...(isNullable ? before.last : [])],
        isNullable: before.isNullable && isNullable,
        isAnchoredNullable:
          (before.isNullable && isAnchoredNullable) ||
          (before.isAnchoredNullable && (isNullable || isAnchoredNullable)),
      }
    }, empty)
  }

  #repeated({ min, max, element }: AST.Quantifier): Part {
    if (max > longRepetition) {
      const hadLongLookaround = this.hasLongLookaround
      this.hasLongLookaround = false
      const part = this.#partOf(element)
      const isTwice = part.last.some((state) => part.first.some((next) => this.#next[state]!.has(next)))
      if (isTwice) this.problem ??= 'a repetition is repeated'
      if (this.hasLongLookaround) this.problem ??= 'a lookaround of any length is repeated'
      this.hasLongLookaround ||= hadLongLookaround
      this.#connect(part.last, part.first)
      return { ...part, isNullable: part.isNullable || min === 0 }
    }
    // The second part may only follow the first. Otherwise an optional part could be read as either of them.
    return Array.from({ length: Math.min(max, 2) }).reduceRight<Part>((after, _, i) => {
      const part = this.#allOf([this.#partOf(element), after])
      return i < min ? part : { ...part, isNullable: true }
    }, empty)
  }

  #connect(from: readonly number[], to: readonly number[]): void {
    for (const state of from) for (const next of to) this.#next[state]!.add(next)
  }

  /** Loops: states from which a path leads back to them, with all states on such a path. */
  #loops(): number[][] {
    const reached = this.#next.map((_, state) => this.#reachedFrom(state))
    const loops: number[][] = []
    for (const [state, from] of reached.entries()) {
      if (!from.has(state) || loops.some((loop) => loop.includes(state))) continue
      loops.push([...from].filter((other) => reached[other]!.has(state)))
    }
    return loops
  }

  #reachedFrom(state: number, without: ReadonlySet<number> = new Set()): Set<number> {
    const found = new Set<number>()
    for (const left = [state]; left.length > 0; ) {
      for (const next of this.#next[left.pop()!]!) {
        if (found.has(next) || without.has(next) || this.#reads[next] === 0n) continue
        found.add(next)
        left.push(next)
      }
    }
    return found
  }

  /** True if one text leads in two ways from a state of the loop back to this state. */
  #isExponential([state, ...rest]: readonly number[]): boolean {
    const loop = [state!, ...rest]
    const pairs = this.#follow([[state!, state!]], [loop, loop])
    const parted = pairs.filter(([one, other]) => one !== other)
    return parted.length > 0 && this.#follow(parted, [loop, loop]).some(([a, b]) => a === state && b === state)
  }

  /** True if the same text leads around the first loop, around the second loop, and from the first to the second. */
  #isQuadratic(one: readonly number[], other: readonly number[]): boolean {
    const [start] = other
    if (!this.#reachedFrom(one[0]!).has(start!)) return false
    return one.some((from) =>
      other.some((to) =>
        this.#follow([[from, from, to]], [one, undefined, other]).some(
          ([a, b, c]) => a === from && b === to && c === to,
        ),
      ),
    )
  }

  /** Combinations of states that several runs through the same text can reach. Each run stays `within` its states. */
  #follow(starts: readonly (readonly number[])[], within: readonly (readonly number[] | undefined)[]): number[][] {
    const found = new Map<string, number[]>()
    const left = [...starts]
    for (let runs = left.pop(); runs; runs = left.pop()) {
      for (const next of this.#together(runs, within)) {
        const key = next.join(' ')
        if (found.has(key)) continue
        found.set(key, next)
        left.push(next)
      }
    }
    return [...found.values()]
  }

  #together(runs: readonly number[], within: readonly (readonly number[] | undefined)[]): number[][] {
    let some: { states: number[]; reads: bigint }[] = [{ states: [], reads: everything }]
    for (const [i, run] of runs.entries()) {
      const nexts = [...this.#next[run]!].filter((next) => within[i]?.includes(next) ?? true)
      some = some.flatMap(({ states, reads }) =>
        nexts.flatMap((next) => {
          const both = reads & this.#reads[next]!
          return both === 0n ? [] : [{ states: [...states, next], reads: both }]
        }),
      )
    }
    return some.map(({ states }) => states)
  }
}
