// The order of versions, as each package manager defines it.
import type { PackageKind } from './packages.ts'

const maxLength = 512

/** Below 0, 0 or above 0, like a comparator; undefined when one of the two is not a version. */
export function compareVersions(kind: PackageKind, one: string, other: string): number | undefined {
  if (one.length > maxLength || other.length > maxLength) return undefined
  return kind === 'apk' ? compareApk(one, other) : compareDeb(one, other)
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Whole numbers of any length. */
function byNumber(a: string, b: string): number {
  const [one, other] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')]
  return one.length - other.length || byText(one, other)
}

// apk-package(5): number{.number}…{letter}{_suffix{number}}…{~hash}{-r#}. What follows after an equal beginning decides by
// its kind: the suffix of a release to come is before the end, everything else after it, in the order of `ranks`.
const ranks = { before: 0, end: 1, release: 2, hash: 3, suffixNumber: 4, after: 5, letter: 6, number: 7 }
const suffixesBefore = ['alpha', 'beta', 'pre', 'rc']
const suffixesAfter = ['cvs', 'svn', 'git', 'hg', 'p']
const apkPattern = /^(\d+)((?:\.\d+)*)([a-z]?)((?:_[a-z]+\d*)*)(?:~([0-9a-f]+))?(?:-r(\d+))?$/

type Part = { rank: number; text: string; order: (a: string, b: string) => number }

/** Numbers after the first compare as text when one of them has a leading zero: 1.02 is before 1.1. */
const byFraction = (a: string, b: string): number => (a[0] === '0' || b[0] === '0' ? byText(a, b) : byNumber(a, b))

function compareApk(one: string, other: string): number | undefined {
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
    const number = /\d*$/.exec(suffix)![0]
    const word = suffix.slice(0, suffix.length - number.length)
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

// deb-version(7): {epoch:}upstream{-revision}, each of the last two a word and a number in turn.
const debPattern = /^(?:(\d+):([0-9A-Za-z.+~:-]+)|([0-9A-Za-z.+~-]+))$/

function compareDeb(one: string, other: string): number | undefined {
  const [a, b] = [debParts(one), debParts(other)]
  if (!a || !b) return undefined
  return byNumber(a.epoch, b.epoch) || bySequence(a.upstream, b.upstream) || bySequence(a.revision, b.revision)
}

function debParts(version: string) {
  // Only where an epoch is given may there be another colon.
  const [whole, epoch = '0', withEpoch, without = ''] = debPattern.exec(version) ?? []
  if (whole === undefined) return undefined
  const rest = withEpoch ?? without
  const hyphen = rest.lastIndexOf('-')
  if (hyphen < 0) return { epoch, upstream: rest, revision: '' }
  const [upstream, revision] = [rest.slice(0, hyphen), rest.slice(hyphen + 1)]
  return upstream === '' || revision === '' ? undefined : { epoch, upstream, revision }
}

function bySequence(one: string, other: string): number {
  const [a, b] = [one.split(/(\d+)/), other.split(/(\d+)/)]
  for (let i = 0; i < a.length || i < b.length; i++) {
    const difference = i % 2 === 0 ? byWord(a[i] ?? '', b[i] ?? '') : byNumber(a[i] ?? '', b[i] ?? '')
    if (difference !== 0) return difference
  }
  return 0
}

/** A tilde is before the end of the word, which is before letters, which are before everything else. */
function byWord(one: string, other: string): number {
  const weight = (char: string | undefined): number => {
    if (char === undefined) return 0
    if (char === '~') return -1
    return /[A-Za-z]/.test(char) ? char.charCodeAt(0) : char.charCodeAt(0) + 256
  }
  for (let i = 0; i < one.length || i < other.length; i++) {
    const difference = weight(one[i]) - weight(other[i])
    if (difference !== 0) return difference
  }
  return 0
}
