import { linesOf } from '../databases/lines.ts'
import type { Found, GapReason, Package, PackageKind } from '../packages.ts'

/** A package of a language. Its source package is the package itself. */
export function languagePackage(kind: PackageKind, name: string, version: string, location: string): Package {
  return { kind, name, version, origin: name, originVersion: version, arch: '', locations: [location.slice(0, 512)] }
}

const maxText = 512

/** One package, or a gap with the reason why there is no package. */
export function identified(kind: PackageKind, path: string, name: string, version: string): Found {
  if (name === '' || version === '') return gap(path, 'UNIDENTIFIED', 'the package has no name or no version')
  if (name.length > maxText || version.length > maxText) {
    return gap(path, 'LIMIT_EXCEEDED', `the name or version has more than ${maxText} characters`)
  }
  return { packages: [languagePackage(kind, name, version, path)], gaps: [] }
}

/** Value in the first line that begins with the key. Upper and lower case of keys are equal. */
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
