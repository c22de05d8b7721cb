// Version order of Maven: https://maven.apache.org/pom.html#version-order-specification
import { numberKey } from './number-key.ts'
import { byText } from './parts.ts'

/** A number or a qualifier, with the separator before it. Between a digit and a letter, a dash is assumed. */
type Token = { dash: boolean; text: string }

const aliases = new Map([
  ['cr', 'rc'],
  ['ga', ''],
  ['final', ''],
  ['release', ''],
])
/** Qualifiers that a single letter before a number stands for. */
const letters = new Map([
  ['a', 'alpha'],
  ['b', 'beta'],
  ['m', 'milestone'],
])

// Sort characters, one for each kind of token. The end of a version sorts after prerelease qualifiers such as alpha, and before
// qualifiers that make a version newer.
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
 * Text whose byte order is the Maven version order. Equal versions have equal texts. A qualifier is the same after a dot and
 * after a dash, as in the specification. Maven's own comparison is circular in some cases: 1.sp < 1-0-alpha < 1 < 1.sp. This
 * order is not circular.
 */
export function mavenKey(version: string): string {
  return trimmed(tokensOf(version.toLowerCase())).map(keyOf).join('') + end
}

/** Returns a number below 0, 0 or above 0. Maven accepts any text as a version. */
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

/** Removes zeros and empty qualifiers at the end and before a dash. For example, 1.0.0-rc equals 1-rc. */
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
  // A space sorts before every character of a version. So a qualifier sorts before longer qualifiers that begin with it.
  return known.get(text) ?? `${unknown}${text} `
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text)
}
