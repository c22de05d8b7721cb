import { linesOf } from '../databases/lines.ts'
import type { Found, GapReason, Package, PackageKind } from '../packages.ts'

/** A package of a language, which was not built from another. */
export function languagePackage(kind: PackageKind, name: string, version: string, location: string): Package {
  return { kind, name, version, origin: name, originVersion: version, arch: '', locations: [location.slice(0, 512)] }
}

const maxText = 512

/** One package, or why there is none. */
export function identified(kind: PackageKind, path: string, name: string, version: string): Found {
  if (name === '' || version === '') return gap(path, 'UNIDENTIFIED', 'the package has no name or no version')
  if (name.length > maxText || version.length > maxText) {
    return gap(path, 'LIMIT_EXCEEDED', `the name or version has more than ${maxText} characters`)
  }
  return { packages: [languagePackage(kind, name, version, path)], gaps: [] }
}

/** Value of the first line that begins with the key, up to its end. Keys are compared regardless of case. */
export function fieldOf(text: string, key: string, separators = ':'): string {
  const wanted = key.toLowerCase()
  for (const line of linesOf(text)) {
    const [name, rest] = [line.slice(0, key.length).trim(), line.slice(key.length).trimStart()]
    if (name.toLowerCase() === wanted && separators.includes(rest[0] ?? '\0')) return rest.slice(1).trim()
  }
  return ''
}

export function gap(path: string, reason: GapReason, message: string): Found {
  return { packages: [], gaps: [{ path, reason, message }] }
}
