// Names and versions of Go modules, as the advisories about Go write them.

/**
 * Version of Go itself: `go1.21rc2` is 1.21.0-rc.2, and experiments or other remarks behind the version do not count. Returns
 * the text itself for a build of no release.
 */
export function goRelease(text: string): string {
  if (/-devel/.test(text)) return text.slice(0, 100)
  const [, release, kind, number] = /^(?:go|v)?(\d+\.\d+(?:\.\d+)?)(?:-?(rc|beta)\.?(\d+))?(?![\w.])/.exec(text) ?? []
  if (release === undefined) return text.slice(0, 100)
  const whole = release.split('.').length === 2 ? `${release}.0` : release
  return kind === undefined ? whole : `${whole}-${kind}.${number}`
}

/** True if the name stands for Go itself, whose releases are versions of the standard library and of the toolchain. */
export const isGoItself = (name: string): boolean => name === 'stdlib' || name === 'toolchain'

/**
 * Path of the module that a package URL names. A subpath is normally a folder of the module. It belongs to the path if the
 * document names the package by both together. It also does if it ends in the package's major version: Syft puts the end of long
 * module paths there.
 */
export function goModulePath({ path, subpath, version, named }: GoPurl): string {
  if (path === 'std') return 'stdlib'
  const whole = subpath === '' ? path : `${path}/${subpath}`
  if (whole === path || isSame(whole, named)) return whole
  const [, major] = /(?:^|\/)v([2-9]|[1-9]\d+)$/.exec(subpath) ?? []
  return major !== undefined && majorOf(version) === major ? whole : path
}

/** Names under which a record about a module is found: package URLs have names in lower case only. */
export const goNamesOf = (name: string): string[] => [...new Set([name, name.toLowerCase()])]

/** `named`: the name that the document has besides the package URL; empty if it has none. */
export type GoPurl = { path: string; subpath: string; version: string; named: string }

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

const majorOf = (version: string): string => /^v?(\d+)\./.exec(version)?.[1] ?? ''
