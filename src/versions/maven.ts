// The order of Maven versions: https://maven.apache.org/pom.html#version-order-specification
import { numberKey } from './number-key.ts'
import { byText } from './parts.ts'

/** A number or a qualifier, with the separator before it; a transition between digits and letters counts as a dash. */
type Token = { dash: boolean; text: string }

const aliases = new Map([
  ['cr', 'rc'],
  ['ga', ''],
  ['final', ''],
  ['release', ''],
])
/** Meaning of these letters before a number. */
const letters = new Map([
  ['a', 'alpha'],
  ['b', 'beta'],
  ['m', 'milestone'],
])

// One character for each kind of token, in their order. The end of a version sorts after qualifiers that make it older than the
// same version without them, and before those that make it newer.
const known = new Map([
  ['alpha', 'a'],
  ['beta', 'b'],
  ['milestone', 'c'],
  ['rc', 'd'],
  ['snapshot', 'e'],
  ['', 'g'],
  ['sp', 'h'],
])
const end = 'f'
const unknown = 'i'
const dashNumber = 'j'
const dotNumber = 'k'

/**
 * Text that sorts by bytes as Maven orders the versions; equal for versions that are equal. A qualifier counts the same after a
 * dot as after a dash, as the specification requires. Maven's own comparison is circular in some cases, such as 1.sp < 1-0-alpha
 * < 1 < 1.sp; this one is not.
 */
export function mavenKey(version: string): string {
  return trimmed(tokensOf(version.toLowerCase())).map(keyOf).join('') + end
}

/** Returns a number below 0, 0 or above 0. Any text is a version of Maven. */
export function compareMaven(one: string, other: string): number | undefined {
  return byText(mavenKey(one), mavenKey(other))
}

function tokensOf(version: string): Token[] {
  const tokens: Token[] = []
  for (const [, separator, piece] of `.${version}`.matchAll(/([.-])([^.-]*)/g)) {
    const texts = piece!.match(/\d+|\D+/g) ?? ['0']
    for (const [i, text] of texts.entries()) tokens.push({ dash: separator === '-' || i > 0, text })
  }
  return tokens.map(({ dash, text }, i): Token => {
    if (isNumber(text)) return { dash, text }
    const next = tokens[i + 1]
    const long = next?.dash && isNumber(next.text) ? letters.get(text) : undefined
    return { dash: true, text: long ?? aliases.get(text) ?? text }
  })
}

/** Zeros and empty qualifiers do not count at the end, nor before a dash: 1.0.0-rc is 1-rc. */
function trimmed(tokens: readonly Token[]): Token[] {
  const kept: Token[] = []
  let dashFollows = true
  for (const token of tokens.toReversed()) {
    if (dashFollows && /^0*$/.test(token.text)) continue
    kept.push(token)
    dashFollows = token.dash
  }
  return kept.reverse()
}

function keyOf({ dash, text }: Token): string {
  if (isNumber(text)) return (dash ? dashNumber : dotNumber) + numberKey(text)
  // The blank sorts before every character of a version, so a qualifier sorts before longer ones that begin with it.
  return known.get(text) ?? `${unknown}${text} `
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text)
}
