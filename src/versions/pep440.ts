// Version order of Python: https://packaging.python.org/en/latest/specifications/version-specifiers/
import { numberKey } from './number-key.ts'
import { byText } from './parts.ts'

const separator = '[-_.]?'
const pattern = new RegExp(
  [
    '^v?(?:(?<epoch>\\d+)!)?(?<release>\\d+(?:\\.\\d+)*)',
    `(?:${separator}(?<pre>alpha|a|beta|b|preview|pre|c|rc)${separator}(?<preNumber>\\d*))?`,
    `(?<post>-(?<postBare>\\d+)|${separator}(?:post|rev|r)${separator}(?<postNumber>\\d*))?`,
    `(?<dev>${separator}dev${separator}(?<devNumber>\\d*))?`,
    '(?:\\+(?<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?$',
  ].join(''),
)

/** `first` sorts before all other characters at this position of a key, and `last` after them. */
const first = '!'
const last = '~'

type Parts = {
  epoch?: string
  release: string
  pre?: string
  preNumber?: string
  post?: string
  postBare?: string
  postNumber?: string
  dev?: string
  devNumber?: string
  local?: string
}

/**
 * Text whose byte order is the version order of PEP 440. Equal versions have equal texts. Text that is no version sorts before
 * all versions, in the order of its bytes.
 */
export function pep440Key(version: string): string {
  const parts = pattern.exec(version.toLowerCase())?.groups as Parts | undefined
  if (!parts) return first + version
  return numberKey(parts.epoch ?? '0') + releaseKey(parts.release) + preKey(parts) + suffixKey(parts)
}

/** Returns a number below 0, 0 or above 0. Undefined if one of the two is not a version. */
export function comparePep440(one: string, other: string): number | undefined {
  const [a, b] = [pep440Key(one), pep440Key(other)]
  return a[0] === first || b[0] === first ? undefined : byText(a, b)
}

/** The local version label, such as `cu121` in `2.1.0+cu121`. Empty if there is none. */
export function localLabel(version: string): string {
  return (pattern.exec(version.toLowerCase())?.groups as Parts | undefined)?.local ?? ''
}

/** Zeros at the end are removed, because 1.0 equals 1. */
function releaseKey(release: string): string {
  const parts = release.split('.')
  const last = parts.findLastIndex((part, i) => i === 0 || /[^0]/.test(part))
  return (
    parts
      .slice(0, last + 1)
      .map(numberKey)
      .join('') + first
  )
}

function preKey({ pre, preNumber, post, dev }: Parts): string {
  if (pre === undefined) return post === undefined && dev !== undefined ? first : last
  const phase = /^p|c/.test(pre) ? 'c' : pre[0]! // c, rc, pre and preview are one
  return phase + numberKey(preNumber || '0')
}

function suffixKey({ post, postBare, postNumber, dev, devNumber, local }: Parts): string {
  const postKey = post === undefined ? first : numberKey(postBare ?? (postNumber || '0'))
  const devKey = dev === undefined ? last : numberKey(devNumber || '0')
  return postKey + devKey + (local ?? '').split(/[-_.]/).map(segmentKey).join('') + first
}

/**
 * Key of one segment of a local label. Words sort before numbers. A version without a label has one empty segment, whose key is
 * empty.
 */
function segmentKey(segment: string): string {
  if (segment === '') return ''
  return /^\d+$/.test(segment) ? `1${numberKey(segment)}` : `0${segment}${first}`
}
