// Names and versions of Go modules in the form that Go advisories use.

/**
 * Version of Go itself in semantic versioning: `go1.21rc2` is 1.21.0-rc.2. Remarks after the version, such as experiments, are
 * ignored. Returns the text itself if it is no release.
 */
export function goRelease(text: string): string {
  if (/-devel/.test(text)) return text.slice(0, 100)
  const [, release, kind, number] = /^(?:go|v)?(\d+\.\d+(?:\.\d+)?)(?:-?(rc|beta)\.?(\d+))?(?![\w.])/.exec(text) ?? []
  if (release === undefined) return text.slice(0, 100)
  const whole = release.split('.').length === 2 ? `${release}.0` : release
  return kind === undefined ? whole : `${whole}-${kind}.${number}`
}

/** True if the name means Go itself. The standard library and the toolchain have the version of the Go release. */
export const isGoItself = (name: string): boolean => name === 'stdlib' || name === 'toolchain'

/**
 * Path of the Go module in a package URL. A subpath is normally a folder of the module and not part of the path. It is part of
 * the path in two cases: the document names the package by both together, or the subpath ends in the major version. Syft writes
 * the end of long module paths into the subpath.
 */
export function goModulePath({ path, subpath, version, named }: GoPurl): string {
  if (path === 'std') return 'stdlib'
  const whole = subpath === '' ? path : `${path}/${subpath}`
  if (whole === path || isSame(whole, named)) return whole
  const [, major] = /(?:^|\/)v([2-9]|[1-9]\d+)$/.exec(subpath) ?? []
  return major !== undefined && majorOf(version) === major ? whole : path
}

/** Names under which records about a Go module can be stored. Package URLs have names in lower case only. */
export const goNamesOf = (name: string): string[] => [...new Set([name, name.toLowerCase()])]

/** A Go package URL. `named` is the name in the document outside of the package URL, or empty. */
export type GoPurl = { path: string; subpath: string; version: string; named: string }

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

const majorOf = (version: string): string => /^v?(\d+)\./.exec(version)?.[1] ?? ''
