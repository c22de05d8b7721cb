// Cost estimate of a regular expression, made from its text without compiling it. So a hostile pattern costs nothing.

export type PatternCost = {
  /**
   * Upper bound for the instructions of the compiled program. A match runs each instruction once per character. Slower
   * instructions count more often: character classes, and letters that match in both cases.
   */
  steps: number
  /** Estimated time of parsing and compiling, in nominal microseconds. */
  compile: number
}

/** Group whose end was not read yet. All sizes are in steps. */
type Group = {
  /** Size of the alternatives before the present one, and of the branches to them. */
  before: number
  sum: number
  /** Size of the last part, which a repetition after it would repeat. `undefined` if there is none. */
  last: number | undefined
  captures: boolean
}

/** Compile cost of a Unicode class, measured with the slowest one, `(?i)\p{Assigned}`. */
const unicodeClassCost = 200
/** Compile cost of one character in a range that ignores case. Characters above ASCII need a search. */
const foldedCost = { ascii: 0.05, others: 0.6 }
const lastAscii = 0x7f
/** Steps of every program: its two ends, and the empty group that `patterns.ts` puts in front. */
const ownSteps = 5
const mostRepeats = 1000

const repetition = /[*+?]\??|\{(0|[1-9]\d*)(?:(,)(0|[1-9]\d*)?)?\}\??/y
const quoted = /\\Q([\s\S]*?)(?:\\E|$)/y
const unicodeClass = /\\[pP](?:\{[^}]*\}|[\s\S])/y
const perlClass = /\\[dDsSwW]/y
const namedClass = /\[:\^?\w*:\]/y
const groupStart = /\((?:\?(?:P?<\w+>|([imsU]*)(?:-[imsU]+)?([:)])))?/y
const character = /\\x\{([0-9a-fA-F]{1,8})\}|\\x([0-9a-fA-F]{2})|\\([0-7]{1,3})|\\([\s\S])|([\s\S])/uy

/**
 * Estimates the cost. Returns `undefined` if the text is certainly not a regular expression in RE2 syntax. The compiler finds all
 * other mistakes.
 */
export function estimateCost(pattern: string): PatternCost | undefined {
  return new Estimate(pattern).read()
}

class Estimate {
  readonly #text: string
  readonly #open: Group[] = [newGroup(false)]
  #at = 0
  #folds = false
  #compile = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): PatternCost | undefined {
    while (this.#at < this.#text.length) if (!this.#readPart()) return undefined
    const [whole, ...unclosed] = this.#open
    if (!whole || unclosed.length > 0) return undefined
    const steps = sizeOf(whole) + ownSteps
    return { steps, compile: Math.ceil(this.#compile + this.#text.length + steps) }
  }

  /** Reads one part of the pattern. Returns `false` if the syntax is wrong. */
  #readPart(): boolean {
    const group = this.#open.at(-1)!
    switch (this.#text[this.#at]) {
      case '(':
        return this.#openGroup()
      case ')':
        return this.#closeGroup()
      case '|':
        this.#at++
        group.before = sizeOf(group) + 1
        group.sum = 0
        group.last = undefined
        return true
      case '[':
        return this.#readClass()
      case '.':
      case '^':
      case '$':
        this.#at++
        return add(group, 1)
    }
    const repeat = this.#take(repetition)
    if (repeat) return repeatLast(group, repeat)
    const quote = this.#take(quoted)
    if (quote) {
      for (let i = 0; i < quote[1]!.length; i++) add(group, this.#folds ? 3 : 1)
      return true
    }
    if (this.#takeUnicode() || this.#take(perlClass)) return add(group, this.#folds ? 3 : 2)
    return this.#readCharacter() !== undefined && add(group, this.#folds ? 3 : 1)
  }

  #openGroup(): boolean {
    const start = this.#take(groupStart)!
    const [text, flags, end] = start
    // RE2 supports no other groups that start with `(?`, such as look-ahead.
    if (text === '(' && this.#text[this.#at] === '?') return false
    if (flags?.includes('i')) this.#folds = true
    if (end !== ')') this.#open.push(newGroup(end === undefined))
    return true
  }

  #closeGroup(): boolean {
    this.#at++
    const closed = this.#open.pop()!
    const outer = this.#open.at(-1)
    return outer !== undefined && add(outer, sizeOf(closed) + (closed.captures ? 2 : 0))
  }

  #readClass(): boolean {
    this.#at++
    const isNegated = this.#text[this.#at] === '^'
    if (isNegated) this.#at++
    let items = 0
    let wide = 0
    for (; items === 0 || this.#text[this.#at] !== ']'; items++) {
      if (this.#at >= this.#text.length) return false
      if (this.#take(namedClass) || this.#takeUnicode() || this.#take(perlClass)) {
        wide++
        continue
      }
      const low = this.#readCharacter()
      if (low === undefined) return false
      if (this.#text[this.#at] !== '-' || this.#text[this.#at + 1] === ']') continue
      this.#at++
      const high = this.#readCharacter()
      if (high === undefined) return false
      if (high - low > 1) wide++
      if (this.#folds) this.#fold(low, high)
    }
    this.#at++
    // A class of two letters may be one letter in both cases. Its instruction then ignores case, which takes longer.
    const mayFold = isNegated ? items <= 3 : items <= 2 && wide === 0
    return add(this.#open.at(-1)!, this.#folds || mayFold ? 3 : 2)
  }

  #fold(low: number, high: number): void {
    const ascii = Math.max(0, Math.min(high, lastAscii) - low + 1)
    this.#compile += ascii * foldedCost.ascii + Math.max(0, high - Math.max(low, lastAscii)) * foldedCost.others
  }

  #takeUnicode(): boolean {
    if (!this.#take(unicodeClass)) return false
    this.#compile += unicodeClassCost
    return true
  }

  #readCharacter(): number | undefined {
    const found = this.#take(character)
    if (!found) return undefined
    const [, long, short, octal, escaped, plain] = found
    const hex = long ?? short
    if (hex !== undefined) return Number.parseInt(hex, 16)
    return octal === undefined ? (escaped ?? plain)!.codePointAt(0) : Number.parseInt(octal, 8)
  }

  #take(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at
    const found = form.exec(this.#text)
    if (found) this.#at = form.lastIndex
    return found ?? undefined
  }
}

const newGroup = (captures: boolean): Group => ({ before: 0, sum: 0, last: undefined, captures })

/** An empty alternative is one instruction too. */
const sizeOf = ({ before, sum }: Group): number => before + Math.max(sum, 1)

function add(group: Group, steps: number): boolean {
  group.sum += steps
  group.last = steps
  return true
}

function repeatLast(group: Group, [, min, comma, max]: RegExpExecArray): boolean {
  const { last } = group
  if (last === undefined) return false
  const least = Number(min ?? 0)
  const most = comma === undefined ? least : max === undefined ? undefined : Number(max)
  if (least > mostRepeats || (most !== undefined && (most > mostRepeats || most < least))) return false
  const steps =
    min === undefined || most === undefined ? Math.max(least, 1) * last + 2 : most * last + (most - least) + 1
  group.sum += steps - last
  group.last = steps
  return true
}
