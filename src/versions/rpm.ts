// Version order of rpm.
import { byNumber, byText } from './parts.ts'

// Syntax of rpm-version(7): {epoch:}version{-release}.
const evrPattern = /^(?:(\d{1,20}):)?([^-:\s]+)(?:-([^-:\s]+))?$/

/**
 * Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. Releases are compared only if both
 * versions have one.
 */
export function compareRpm(one: string, other: string): number | undefined {
  const [a, b] = [evrPattern.exec(one), evrPattern.exec(other)]
  if (!a || !b) return undefined
  const difference = byNumber(a[1] ?? '0', b[1] ?? '0') || byParts(a[2]!, b[2]!)
  if (difference !== 0 || a[3] === undefined || b[3] === undefined) return difference
  return byParts(a[3], b[3])
}

/** Parts of a version are numbers, words, tildes and carets. All other characters are separators. */
const partPattern = /[0-9]+|[A-Za-z]+|[~^]/g

function byParts(one: string, other: string): number {
  const [a, b] = [one.match(partPattern) ?? [], other.match(partPattern) ?? []]
  for (let i = 0; i < a.length || i < b.length; i++) {
    const difference = byPart(a[i], b[i])
    if (difference !== 0) return difference
  }
  return 0
}

/** Compares parts in this order: tilde, end of the version, caret, words, numbers. */
function byPart(one: string | undefined, other: string | undefined): number {
  const [a, b] = [rankOf(one), rankOf(other)]
  if (a !== b || one === undefined || other === undefined) return a - b
  return a === ranks.number ? byNumber(one, other) : byText(one, other)
}

const ranks = { tilde: 0, end: 1, caret: 2, word: 3, number: 4 }

function rankOf(part: string | undefined): number {
  if (part === undefined) return ranks.end
  if (part === '~') return ranks.tilde
  if (part === '^') return ranks.caret
  return /^[0-9]/.test(part) ? ranks.number : ranks.word
}

/** True if the release of the version shows that the package belongs to a module. */
export const isModular = (version: string): boolean => /\.module[+_]/.test(version)
