// The order of versions of rpm.
import { byNumber, byText } from './parts.ts'

// rpm-version(7): {epoch:}version{-release}.
const evrPattern = /^(?:(\d{1,20}):)?([^-:\s]+)(?:-([^-:\s]+))?$/

/** Below 0, 0 or above 0; undefined when one of the two is not a version. A release counts where both have one. */
export function compareRpm(one: string, other: string): number | undefined {
  const [a, b] = [evrPattern.exec(one), evrPattern.exec(other)]
  if (!a || !b) return undefined
  const difference = byNumber(a[1] ?? '0', b[1] ?? '0') || byParts(a[2]!, b[2]!)
  if (difference !== 0 || a[3] === undefined || b[3] === undefined) return difference
  return byParts(a[3], b[3])
}

/** Numbers, words, tildes and carets; all other characters only separate them. */
const partPattern = /[0-9]+|[A-Za-z]+|[~^]/g

function byParts(one: string, other: string): number {
  const [a, b] = [one.match(partPattern) ?? [], other.match(partPattern) ?? []]
  for (let i = 0; i < a.length || i < b.length; i++) {
    const difference = byPart(a[i], b[i])
    if (difference !== 0) return difference
  }
  return 0
}

/** A tilde is before the end, which is before a caret, which is before words, which are before numbers. */
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

/** True if a version belongs to a module, as its release shows. */
export const isModular = (version: string): boolean => /\.module[+_]/.test(version)
