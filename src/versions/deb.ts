// Version order of Debian.
import { byNumber } from './parts.ts'

// Syntax of deb-version(7): {epoch:}upstream{-revision}. In upstream and revision, words and numbers alternate.
const debPattern = /^(?:(\d+):([0-9A-Za-z.+~:-]+)|([0-9A-Za-z.+~-]+))$/

/** Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
export function compareDeb(one: string, other: string): number | undefined {
  const [a, b] = [debParts(one), debParts(other)]
  if (!a || !b) return undefined
  return byNumber(a.epoch, b.epoch) || bySequence(a.upstream, b.upstream) || bySequence(a.revision, b.revision)
}

function debParts(version: string) {
  // Another colon is allowed only after an epoch.
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

/**
 * Compares words. A tilde sorts before the end of a word. The end sorts before letters, and letters sort before all other
 * characters.
 */
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
