// What an image contains, as far as advisories can speak of it: the packages of its distribution.

/** The kinds of packages whose versions we can compare, in the words of package URLs. */
export const packageKinds = ['apk', 'deb'] as const
export type PackageKind = (typeof packageKinds)[number]

export type Package = {
  kind: PackageKind
  name: string
  version: string
  /** The package that it was built from; its own name where nothing else is said. */
  origin: string
  /** The version of the origin, which on Debian may differ from the package's own. */
  originVersion: string
  arch: string
}

export type ImageContents = {
  /** Each package once, ordered by kind, name and version. */
  packages: Package[]
  /** `ID` and `VERSION_ID` of os-release, or what an SBOM says instead; empty when nothing is said. */
  distribution: { id: string; version: string }
}

/** A file of an image, by its path without a leading slash. */
export type ImageFile = { path: string; bytes: Uint8Array }

/** Why an image cannot be read. It is stored, so a word keeps its meaning. */
export type UnreadableReason = 'DAMAGED' | 'LIMIT_EXCEEDED' | 'TIMED_OUT' | 'UNSUPPORTED' | 'BLOB_MISSING'

/** What is wrong lies in the image, so that reading it again would end the same way. */
export class Unreadable extends Error {
  override name = 'Unreadable'
  readonly reason: UnreadableReason

  constructor(reason: UnreadableReason, message: string) {
    super(message)
    this.reason = reason
  }
}

const maxPackages = 20_000
const maxText = 512
const maxTotal = 4 * 2 ** 20

/** Gathers packages, each once, and refuses what no real database has. */
export class PackageList {
  readonly #byKey = new Map<string, Package>()
  #total = 0

  add(given: Package): void {
    const values = [given.kind, given.name, given.version, given.arch, given.origin, given.originVersion]
    if (values.some((value) => value.length > maxText)) {
      throw new Unreadable('LIMIT_EXCEEDED', `a package says something longer than ${maxText} characters`)
    }
    const key = values.join('\0')
    if (!this.#byKey.has(key)) this.#total += key.length
    this.#byKey.set(key, given)
    if (this.#total > maxTotal) throw new Unreadable('LIMIT_EXCEEDED', `packages of more than ${maxTotal} characters`)
    if (this.#byKey.size > maxPackages) throw new Unreadable('LIMIT_EXCEEDED', `more than ${maxPackages} packages`)
  }

  sorted(): Package[] {
    const entries = [...this.#byKey].sort(([one], [other]) => (one < other ? -1 : 1))
    return entries.map(([, found]) => found)
  }
}
