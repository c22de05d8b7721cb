// Version order of Alpine.
import { byNumber, byText } from './parts.ts'

// Syntax of apk-package(5): number{.number}…{letter}{_suffix{number}}…{~hash}{-r#}. If two versions have the same beginning, the
// kinds of the next parts are compared. A prerelease suffix sorts before the end of a version. Everything else sorts after the
// end, in the order of `ranks`.
const ranks = { before: 0, end: 1, release: 2, hash: 3, suffixNumber: 4, after: 5, letter: 6, number: 7 }
const suffixesBefore = ['alpha', 'beta', 'pre', 'rc']
const suffixesAfter = ['cvs', 'svn', 'git', 'hg', 'p']
const apkPattern = /^(\d+)((?:\.\d+)*)([a-z]?)((?:_[a-z]+\d*)*)(?:~([0-9a-f]+))?(?:-r(\d+))?$/

type Part = { rank: number; text: string; order: (a: string, b: string) => number }

/** Numbers after the first are compared as text if one of them has a leading zero. For example, 1.02 is before 1.1. */
const byFraction = (a: string, b: string): number => (a[0] === '0' || b[0] === '0' ? byText(a, b) : byNumber(a, b))

/** Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
export function compareApk(one: string, other: string): number | undefined {
  const [a, b] = [apkParts(one), apkParts(other)]
  if (!a || !b) return undefined
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = a[i]!.rank - b[i]!.rank || a[i]!.order(a[i]!.text, b[i]!.text)
    if (difference !== 0) return difference
  }
  return 0
}

function apkParts(version: string): Part[] | undefined {
  const [whole, first = '', more = '', letter = '', suffixes = '', hash, release] = apkPattern.exec(version) ?? []
  if (whole === undefined) return undefined
  const parts: Part[] = [{ rank: ranks.number, text: first, order: byNumber }]
  for (const text of more.split('.').slice(1)) parts.push({ rank: ranks.number, text, order: byFraction })
  if (letter !== '') parts.push({ rank: ranks.letter, text: letter, order: byText })
  for (const suffix of suffixes.split('_').slice(1)) {
    const end = suffix.search(/\d|$/)
    const [word, number] = [suffix.slice(0, end), suffix.slice(end)]
    const [before, after] = [suffixesBefore.indexOf(word), suffixesAfter.indexOf(word)]
    if (before < 0 && after < 0) return undefined
    const rank = before < 0 ? ranks.after : ranks.before
    parts.push({ rank, text: String(Math.max(before, after)), order: byNumber })
    if (number !== '') parts.push({ rank: ranks.suffixNumber, text: number, order: byNumber })
  }
  if (hash !== undefined) parts.push({ rank: ranks.hash, text: hash, order: byText })
  if (release !== undefined) parts.push({ rank: ranks.release, text: release, order: byNumber })
  parts.push({ rank: ranks.end, text: '', order: byText })
  return parts
}
