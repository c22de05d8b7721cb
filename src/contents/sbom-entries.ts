// Converts the entries of one SBOM to packages. An entry that cannot be converted causes a coverage gap, unless it does not
// describe a package.
import { releaseNamed } from './codenames.ts'
import { ecosystemOfDistribution, isOtherDistribution } from './ecosystems.ts'
import { distributionOf, readPackageUrl } from './package-url.ts'
import {
  type Distribution,
  type Gap,
  type GapReason,
  type ImageContents,
  isOfDistribution,
  type Package,
  PackageList,
} from './packages.ts'

export type SbomEntry = {
  purls: readonly string[]
  name: string
  version: string
  /** True if the entry describes a package even without a package URL. False for files, images and similar entries. */
  isPackage: boolean
}

/** Types of package URLs for images and layers. The contents of these images are read elsewhere. */
const imageTypes: ReadonlySet<string> = new Set(['oci', 'docker'])

/** Limit on the types without version comparison that gaps name one by one. */
const maxTypes = 20

/** Package URLs of Go modules. The main module of a program has no version in its build information. */
const isGoModule = /^\s*pkg:\/*golang\//i

export class SbomEntries {
  readonly #list = new PackageList()
  #named: Distribution | undefined
  readonly #ofPackages = new Map<string, { distribution: Distribution; count: number }>()
  readonly #notCompared = new Map<string, number>()
  readonly #missing = { purl: 0, name: 0, version: 0 }

  /** The operating system that the document names. */
  setDistribution(name: string, version: string): void {
    const release = releaseNamed(name.toLowerCase(), version)
    this.#named = { id: name.slice(0, 128).toWellFormed(), version: release.slice(0, 128).toWellFormed() }
  }

  /** Adds an entry. `refine` adds the source package if the document names it outside of package URLs. */
  add({ purls, isPackage, ...besides }: SbomEntry, refine: (found: Package) => Package = (found) => found): void {
    const distinct = [...new Set(purls)]
    // If an entry has several package URLs, it is unknown which of them its version belongs to.
    const known = distinct.length === 1 ? besides : { ...besides, version: '' }
    for (const purl of distinct) this.#addPurl(purl, known, refine)
    if (distinct.length === 0 && isPackage) this.#missing.purl++
  }

  #addPurl(purl: string, besides: { name: string; version: string }, refine: (found: Package) => Package): void {
    const version = besides.version || (isGoModule.test(purl) ? '(devel)' : '')
    const read = readPackageUrl(purl, { ...besides, version })
    if ('missing' in read) this.#missing[read.missing]++
    else if ('type' in read) {
      if (!imageTypes.has(read.type)) this.#noteOther(read.type)
    } else {
      this.#noteDistribution(purl)
      this.#list.add(refine(read.package))
    }
  }

  #noteOther(given: string): void {
    const type = this.#notCompared.has(given) || this.#notCompared.size < maxTypes ? given : 'other types'
    this.#notCompared.set(type, (this.#notCompared.get(type) ?? 0) + 1)
  }

  #noteDistribution(purl: string): void {
    const distribution = distributionOf(purl)
    if (!distribution) return
    const key = `${distribution.id} ${distribution.version}`
    const before = this.#ofPackages.get(key)
    if (before) before.count++
    else if (this.#ofPackages.size < maxTypes) this.#ofPackages.set(key, { distribution, count: 1 })
  }

  contents(): ImageContents {
    const packages = this.#list.sorted()
    const distribution = this.#distribution()
    const hasDatabase = packages.some(isOfDistribution)
    return { packages, distribution, hasDatabase, gaps: [...this.#gaps(), ...this.#otherDistributions(distribution)] }
  }

  #distribution(): Distribution {
    const ofPackages = [...this.#ofPackages.values()].map((one) => one.distribution)
    // In some documents, the operating system has another name than in its packages, or no release.
    const all = [...(this.#named ? [this.#named] : []), ...ofPackages]
    const known = all.find((one) => ecosystemOfDistribution(one) !== '')
    return known ?? all.find(({ id }) => id !== '') ?? { id: '', version: '' }
  }

  #gaps(): Gap[] {
    const gapOf = (reason: GapReason, message: string): Gap => ({ path: '', reason, message })
    const { purl, name, version } = this.#missing
    return [
      ...[...this.#notCompared].map(([type, count]) =>
        gapOf('UNSUPPORTED', `an SBOM has ${counted(count)} of an unsupported type: ${type}`),
      ),
      ...(purl > 0 ? [gapOf('UNIDENTIFIED', `an SBOM has ${counted(purl)} without a package URL`)] : []),
      ...(name > 0 ? [gapOf('UNIDENTIFIED', `an SBOM has ${counted(name)} with an invalid package URL`)] : []),
      ...(version > 0 ? [gapOf('UNIDENTIFIED', `an SBOM has ${counted(version)} without a version`)] : []),
    ]
  }

  /**
   * Gaps for packages of other distributions. All packages are compared as packages of one release, which is the release of the
   * image.
   */
  #otherDistributions(meant: Distribution): Gap[] {
    return [...this.#ofPackages.values()].flatMap(({ distribution: { id, version }, count }): Gap[] => {
      if (!isOtherDistribution({ id, version }, meant)) return []
      const [given, taken] = [`${id} ${version}`.trim(), `${meant.id} ${meant.version}`.trim()]
      const message = `an SBOM has ${counted(count)} of ${given}, compared with advisories for ${taken}`
      return [{ path: '', reason: 'UNSUPPORTED', message }]
    })
  }
}

const counted = (count: number): string => `${count} ${count === 1 ? 'package' : 'packages'}`
