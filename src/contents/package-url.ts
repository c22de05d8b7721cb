import { type Package, type PackageKind, packageKinds } from './packages.ts'

/** The package that a package URL names, when it is of a kind that we compare and has a version. */
export function packageOf(url: string): Package | undefined {
  const [, type = '', path = '', query = ''] = /^pkg:\/*([A-Za-z0-9.+-]+)\/([^?#]*)(?:\?([^#]*))?/.exec(url) ?? []
  const kind = packageKinds.find((known) => known === type.toLowerCase())
  const at = path.lastIndexOf('@')
  if (!kind || at < 1) return undefined

  const name = decoded(path.slice(path.slice(0, at).lastIndexOf('/') + 1, at))
  const qualifiers = new URLSearchParams(query.replaceAll('+', '%2B'))
  const version = withEpoch(kind, decoded(path.slice(at + 1)), qualifiers.get('epoch') ?? '')
  if (name === '' || version === '') return undefined
  return { kind, name, version, ...originIn(qualifiers, name, version), arch: qualifiers.get('arch') ?? '' }
}

/** The package URL of a package, in a distribution where that is known. */
export function packageUrl(
  { kind, name, version, arch }: Omit<Package, 'origin' | 'originVersion'>,
  distribution: string,
) {
  const parts = distribution === '' ? [kind, name] : [kind, distribution, name]
  const path = parts.map(encodeURIComponent).join('/')
  return `pkg:${path}@${encodeURIComponent(version)}${arch === '' ? '' : `?arch=${encodeURIComponent(arch)}`}`
}

/** `upstream` is the origin's name, followed by its version where that differs; apk builders say `origin`. */
function originIn(qualifiers: URLSearchParams, name: string, version: string) {
  const [origin = '', originVersion = ''] = (qualifiers.get('upstream') ?? qualifiers.get('origin') ?? '').split('@')
  return { origin: origin || name, originVersion: originVersion || version }
}

function withEpoch(kind: PackageKind, version: string, epoch: string): string {
  return kind === 'deb' && /^[1-9][0-9]*$/.test(epoch) && !version.includes(':') ? `${epoch}:${version}` : version
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
