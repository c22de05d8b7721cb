// Reads the packages that an SBOM names: SPDX 2.2, 2.3 and 3.0, CycloneDX 1.2 to 1.7, all in JSON, by themselves or stated in
// in-toto. Only package URLs count, since they alone say of what kind a package is. What is said besides is not looked at.

import { type Json, objectsIn, parseJson, statedBy, textOf } from './json.ts'
import { distributionOf, packageOf } from './package-url.ts'
import {
  type Distribution,
  type Gap,
  type ImageContents,
  isOfDistribution,
  type Package,
  PackageList,
  Unreadable,
} from './packages.ts'

/** No honest SBOM of the permitted size has as many; bounds what parsing it can cost in memory. */
const maxValues = 2_000_000

/** Throws Unreadable for anything that is not an SBOM in one of the formats. */
export function readSbom(bytes: Uint8Array): ImageContents {
  const document = statedBy(parseSbom(bytes, maxValues), maxValues, 'SBOM')
  if (document.bomFormat === 'CycloneDX' && /^1\.[2-7]$/.test(textOf(document.specVersion))) return cycloneDx(document)
  if (/^SPDX-2\.[23]$/.test(textOf(document.spdxVersion))) return spdx2(document)
  if (/^https:\/\/spdx\.org\/rdf\/3\./.test(textOf(document['@context']))) return spdx3(document)
  throw new Unreadable('UNSUPPORTED', 'the SBOM is neither SPDX 2.2, 2.3 or 3.0 nor CycloneDX 1.2 to 1.7')
}

/** The document, whatever it holds. Throws Unreadable when it is not JSON or has more than `most` values. */
export const parseSbom = (bytes: Uint8Array, most: number): Json => parseJson(bytes, most, 'SBOM')

/** Kinds of packages that vulnerabilities are known of, and that we cannot compare. */
const otherEcosystems = new Set('alpm cocoapods composer conan conda cran hackage hex julia nuget pub swift'.split(' '))

/** The packages of one document, and the distribution that it names, or else that of its packages. */
class Named {
  readonly #list = new PackageList()
  #said: Distribution | undefined
  #ofPackages: Distribution | undefined
  readonly #notCompared = new Map<string, number>()
  #unnamed = 0

  distribution(name: unknown, version: unknown): void {
    this.#said = { id: textOf(name).slice(0, 128), version: textOf(version).slice(0, 128) }
  }

  /** A package without a package URL, of which nobody can say what it is. */
  addUnnamed(): void {
    this.#unnamed++
  }

  /** `refined` adds what the document says of a package besides. */
  add(url: string, refined: (found: Package) => Package = (found) => found): void {
    const found = packageOf(url)
    if (found) {
      this.#ofPackages ??= distributionOf(url)
      this.#list.add(refined(found))
    } else {
      this.#noteOther(url)
    }
  }

  #noteOther(url: string): void {
    const type = /^pkg:\/*([a-z]+)\/[^?#]+@/i.exec(url)?.[1]?.toLowerCase() ?? ''
    if (otherEcosystems.has(type)) this.#notCompared.set(type, (this.#notCompared.get(type) ?? 0) + 1)
  }

  contents(): ImageContents {
    const gaps = [...this.#notCompared].map(([type, count]): Gap => {
      return { path: '', reason: 'UNSUPPORTED', message: `an SBOM names ${count} packages of ${type}` }
    })
    if (this.#unnamed > 0) {
      const message = `an SBOM names ${this.#unnamed} packages without a package URL`
      gaps.push({ path: '', reason: 'UNIDENTIFIED', message })
    }
    const said = this.#said?.id ? this.#said : (this.#ofPackages ?? this.#said)
    const packages = this.#list.sorted()
    const hasDatabase = packages.some(isOfDistribution)
    return { packages, distribution: said ?? { id: '', version: '' }, hasDatabase, gaps }
  }
}

function cycloneDx(document: Json): ImageContents {
  const named = new Named()
  // Components nest, so deep that recursion could not follow.
  const left = [objectsIn(document.components)]
  for (let components = left.pop(); components; components = left.pop()) {
    for (const component of components) {
      if (component.components) left.push(objectsIn(component.components))
      if (component.type === 'operating-system') named.distribution(component.name, component.version)
      const purl = textOf(component.purl)
      // The others stand for files, images and the like.
      if (purl === '' && ['library', 'framework'].includes(textOf(component.type))) named.addUnnamed()
      else named.add(purl, (found) => withTrivySource(found, component))
    }
  }
  return named.contents()
}

/** Trivy keeps the origin in properties of its own. */
function withTrivySource(found: Package, component: Json): Package {
  if (!isOfDistribution(found) || found.origin !== found.name) return found
  const properties = objectsIn(component.properties)
  const said = (name: string) =>
    textOf(properties.find((property) => property.name === `aquasecurity:trivy:${name}`)?.value)
  const [origin, version, release, epoch] = [said('SrcName'), said('SrcVersion'), said('SrcRelease'), said('SrcEpoch')]
  if (origin === '') return found
  const joined = `${epoch === '' ? '' : `${epoch}:`}${version}${release === '' ? '' : `-${release}`}`
  return { ...found, origin, originVersion: version === '' ? found.version : joined }
}

/** Whether it may be a package by its purpose; others stand for files, images and the like. */
const isPackage = (purpose: unknown): boolean =>
  ['', 'LIBRARY', 'FRAMEWORK', 'INSTALL'].includes(textOf(purpose).toUpperCase())
/** What Trivy and Syft call what is no package, where they say no purpose. */
const standsFor = /^SPDXRef-(?:OperatingSystem|Application|ContainerImage|Filesystem|Repository|DocumentRoot)\b/

function spdx2(document: Json): ImageContents {
  const named = new Named()
  const { documentDescribes } = document
  const roots = new Set([
    ...(Array.isArray(documentDescribes) ? documentDescribes.map(textOf) : []),
    ...objectsIn(document.relationships)
      .filter(({ relationshipType }) => relationshipType === 'DESCRIBES')
      .map(({ relatedSpdxElement }) => textOf(relatedSpdxElement)),
  ])
  for (const entry of objectsIn(document.packages)) {
    if (entry.primaryPackagePurpose === 'OPERATING-SYSTEM' || /^SPDXRef-OperatingSystem/.test(textOf(entry.SPDXID))) {
      named.distribution(entry.name, entry.versionInfo)
    }
    const reference = objectsIn(entry.externalRefs).find(({ referenceType }) => referenceType === 'purl')
    const purl = textOf(reference?.referenceLocator)
    const isPart = isPackage(entry.primaryPackagePurpose) && !roots.has(textOf(entry.SPDXID))
    if (purl === '' && isPart && !standsFor.test(textOf(entry.SPDXID))) named.addUnnamed()
    else named.add(purl, (found) => withBuiltFrom(found, textOf(entry.sourceInfo)))
  }
  return named.contents()
}

/** Trivy says `built package from: <origin> <version>`. */
function withBuiltFrom(found: Package, sourceInfo: string): Package {
  const [, origin, originVersion] = /^built package from: (\S+) (\S+)$/.exec(sourceInfo) ?? []
  return isOfDistribution(found) && found.origin === found.name && origin && originVersion
    ? { ...found, origin, originVersion }
    : found
}

function spdx3(document: Json): ImageContents {
  const named = new Named()
  const graph = objectsIn(document['@graph'])
  const roots = new Set(
    graph.flatMap(({ rootElement }) => (Array.isArray(rootElement) ? rootElement : [rootElement]).map(textOf)),
  )
  for (const entry of graph) {
    if (entry.type !== 'software_Package') continue
    const identifier = objectsIn(entry.externalIdentifier).find((one) => one.externalIdentifierType === 'packageUrl')
    const purl = textOf(entry.software_packageUrl ?? identifier?.identifier)
    if (purl === '' && isPackage(entry.software_primaryPurpose) && !roots.has(textOf(entry.spdxId))) named.addUnnamed()
    else named.add(purl)
  }
  return named.contents()
}
