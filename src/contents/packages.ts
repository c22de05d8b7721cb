// Packages of an image that advisories can be about: those of its distribution and of languages.

/** Kinds of packages of distributions and of languages whose versions we can compare, as types of package URLs. */
export const distributionKinds = ['apk', 'deb', 'rpm'] as const
const languageKinds = ['cargo', 'gem', 'golang', 'maven', 'npm', 'pypi'] as const
export const packageKinds = [...distributionKinds, ...languageKinds] as const
export type DistributionKind = (typeof distributionKinds)[number]
export type PackageKind = (typeof packageKinds)[number]

export type Package = {
  kind: PackageKind
  /**
   * Name in the advisories of its ecosystem: `group:artifact` of Maven, the path of a Go module, `stdlib` for Go itself,
   * `@scope/name` of npm, the normalized name of Python.
   */
  name: string
  version: string
  /** Source package that it was built from; by default its own name. */
  origin: string
  /** The version of the origin, which on Debian may differ from the package's own. */
  originVersion: string
  arch: string
  /** The module of rpm that it is part of, as `name:stream`. */
  module?: string
  /**
   * The first files that list the package, without a leading slash; a part after `!/` is inside of an archive. For packages of
   * languages only.
   */
  locations?: readonly string[]
  /** The one package of the distribution that all these files belong to. */
  owner?: Owner
}

/** A package of the distribution, by name and version. */
export type Owner = { name: string; version: string }

export type ImageContents = {
  /** Each package once, ordered by kind, name and version. */
  packages: Package[]
  distribution: Distribution
  /** True if the packages of a distribution are known, even if there are none. */
  hasDatabase: boolean
  /** Parts of the image that could not be read. A package that is not found may be in one of them. */
  gaps: Gap[]
}

/** `ID` and `VERSION_ID` of os-release, or their equivalents in an SBOM; empty if unknown. */
export type Distribution = { id: string; version: string }

/** Stored, so the values keep their meaning. `UNIDENTIFIED`: a file does not have its name or version. */
export type GapReason = UnreadableReason | 'UNIDENTIFIED'
export type Gap = { path: string; reason: GapReason; message: string }

/** Packages and gaps of one file. */
export type Found = {
  packages: readonly Package[]
  gaps: readonly Gap[]
  /** True for the database of a distribution that was read to its end. */
  isDatabase?: boolean
  /** Files that packages of the distribution own, with the name of the package. */
  owned?: readonly (readonly [path: string, name: string])[]
}

/** File of an image, by its path without a leading slash: its content, or the packages found in it. */
export type ImageFile = { path: string; bytes: Uint8Array; found?: Found }

/** Why an image cannot be read, or a report about one: that alone may be `NOT_SCANNED`. Stored, so a word keeps its meaning. */
export type UnreadableReason =
  | 'DAMAGED'
  | 'LIMIT_EXCEEDED'
  | 'TIMED_OUT'
  | 'UNSUPPORTED'
  | 'BLOB_MISSING'
  | 'NOT_SCANNED'

/** Error whose cause is in the image, so that reading it again would end in the same way. */
export class Unreadable extends Error {
  override name = 'Unreadable'
  readonly reason: UnreadableReason

  constructor(reason: UnreadableReason, message: string) {
    super(message)
    this.reason = reason
  }
}

export function isOfDistribution({ kind }: Pick<Package, 'kind'>): boolean {
  return distributionKinds.some((one) => one === kind)
}

const maxPackages = 20_000
const maxText = 512
const maxTotal = 4 * 2 ** 20
const maxLocations = 10

/** Collects packages, each once. Throws Unreadable above the limits of real databases. */
export class PackageList {
  readonly #byKey = new Map<string, Package>()
  #total = 0

  /** A package that is there already only gets the locations of the other. */
  add(given: Package): void {
    const { kind, name, version, arch, origin, originVersion, module = '' } = given
    const values = [kind, name, version, arch, origin, originVersion, ...(module === '' ? [] : [module])]
    if (values.some((value) => value.length > maxText)) {
      throw new Unreadable('LIMIT_EXCEEDED', `a field of a package has more than ${maxText} characters`)
    }
    const key = values.join('\0')
    const before = this.#byKey.get(key)
    const one = before ? mergePackages(before, given) : withFewLocations(given)
    const [was, is] = [before ? sizeOf(key, before) : 0, sizeOf(key, one)]
    if (this.#total + is - was > maxTotal) {
      throw new Unreadable('LIMIT_EXCEEDED', `the packages have more than ${maxTotal} characters together`)
    }
    if (!before && this.#byKey.size >= maxPackages) {
      throw new Unreadable('LIMIT_EXCEEDED', `there are more than ${maxPackages} packages`)
    }
    this.#byKey.set(key, one)
    this.#total += is - was
  }

  sorted(): Package[] {
    const entries = [...this.#byKey].sort(([one], [other]) => (one < other ? -1 : 1))
    return entries.map(([, found]) => found)
  }
}

const sizeOf = (key: string, { locations = [] }: Package): number =>
  key.length + locations.reduce((sum, { length }) => sum + length, 0)

function withFewLocations(one: Package): Package {
  return (one.locations?.length ?? 0) > maxLocations
    ? { ...one, locations: one.locations!.slice(0, maxLocations) }
    : one
}

/** It has an owner only where every one of its files has that one. */
function mergePackages(one: Package, other: Package): Package {
  if (!other.locations || one.locations === other.locations) return one
  if (!one.locations) return withFewLocations(other)
  const { owner, ...rest } = one
  const locations = [...new Set([...one.locations, ...other.locations])].sort()
  const same = owner && owner.name === other.owner?.name && owner.version === other.owner.version
  return withFewLocations({ ...rest, locations, ...(same ? { owner } : {}) })
}

const maxGaps = 50

/** Collects gaps: the first ones, and the number of further ones. */
export class GapList {
  readonly #gaps: Gap[] = []
  #more = 0

  add(path: string, reason: GapReason, message: string): void {
    if (this.#gaps.length < maxGaps) this.#gaps.push({ path: path.slice(0, maxText), reason, message })
    else this.#more++
  }

  all(): Gap[] {
    const left = { path: '', reason: 'LIMIT_EXCEEDED' as const, message: `and ${this.#more} more coverage gaps` }
    return this.#more === 0 ? [...this.#gaps] : [...this.#gaps, left]
  }
}
