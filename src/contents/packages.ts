// Packages of an image that can have advisories: packages of its distribution and of languages.

/** Package kinds whose versions can be compared, for distributions and for languages. The names are types of package URLs. */
export const distributionKinds = ['apk', 'deb', 'rpm'] as const
const languageKinds = ['cargo', 'gem', 'golang', 'maven', 'npm', 'pypi'] as const
export const packageKinds = [...distributionKinds, ...languageKinds] as const
export type DistributionKind = (typeof distributionKinds)[number]
export type PackageKind = (typeof packageKinds)[number]

export type Package = {
  kind: PackageKind
  /**
   * Name in the form that advisories of the ecosystem use. Maven: `group:artifact`. Go modules: the path. Go itself: `stdlib`.
   * npm: `@scope/name`. Python: the normalized name.
   */
  name: string
  version: string
  /** Name of the source package that the package was built from. By default the package's own name. */
  origin: string
  /** Version of the source package. On Debian it can differ from the version of the package. */
  originVersion: string
  arch: string
  /** The rpm module that the package belongs to, as `name:stream`. */
  module?: string
  /**
   * Paths of the first files that list the package, without a leading slash. A part after `!/` is a path inside an archive. Only
   * for packages of languages.
   */
  locations?: readonly string[]
  /** The distribution package that owns all these files, if there is one. */
  owner?: Owner
}

/** A distribution package, by name and version. */
export type Owner = { name: string; version: string }

export type ImageContents = {
  /** Packages without duplicates, sorted by kind, name and version. */
  packages: Package[]
  distribution: Distribution
  /** True if the packages of a distribution are known, even if there are none. */
  hasDatabase: boolean
  /** Parts of the image that could not be read. These parts can contain more packages. */
  gaps: Gap[]
}

/** `ID` and `VERSION_ID` of os-release, or their equivalents in an SBOM; empty if unknown. */
export type Distribution = { id: string; version: string }

/**
 * Reasons of gaps. They are stored in the database, so their meaning must not change. `UNIDENTIFIED`: a file does not contain its
 * name or version.
 */
export type GapReason = UnreadableReason | 'UNIDENTIFIED'
export type Gap = { path: string; reason: GapReason; message: string }

/** Packages and gaps of one file. */
export type Found = {
  packages: readonly Package[]
  gaps: readonly Gap[]
  /** True if the file is the database of a distribution and was read completely. */
  isDatabase?: boolean
  /** Files that distribution packages own, each with the name of the package. */
  owned?: readonly (readonly [path: string, name: string])[]
}

/**
 * File of an image. The path has no leading slash. The file has its content in `bytes`, or the packages that were read from it in
 * `found`.
 */
export type ImageFile = { path: string; bytes: Uint8Array; found?: Found }

/**
 * Reasons why an image or a report about an image cannot be read. Only reports can have `NOT_SCANNED`. The reasons are stored in
 * the database, so their meaning must not change.
 */
export type UnreadableReason =
  | 'DAMAGED'
  | 'LIMIT_EXCEEDED'
  | 'TIMED_OUT'
  | 'UNSUPPORTED'
  | 'BLOB_MISSING'
  | 'NOT_SCANNED'

/** Error in the content of an image. Reading the image again would cause the same error. */
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

/** Collects packages without duplicates. Throws Unreadable above the limits of real databases. */
export class PackageList {
  readonly #byKey = new Map<string, Package>()
  #total = 0

  /** Adds a package. If the package exists already, adds only the new locations. */
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

/** The merged package has an owner only if all of its files have the same owner. */
function mergePackages(one: Package, other: Package): Package {
  if (!other.locations || one.locations === other.locations) return one
  if (!one.locations) return withFewLocations(other)
  const { owner, ...rest } = one
  const locations = [...new Set([...one.locations, ...other.locations])].sort()
  const same = owner && owner.name === other.owner?.name && owner.version === other.owner.version
  return withFewLocations({ ...rest, locations, ...(same ? { owner } : {}) })
}

const maxGaps = 50

/** Collects gaps. Stores the first gaps, and counts the other ones. */
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
