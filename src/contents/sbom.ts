// Reads the packages that an SBOM names: SPDX 2.2, 2.3 and 3.0, CycloneDX 1.2 to 1.7, all in JSON. Only package URLs
// count, since they alone say of what kind a package is. What the document says besides is not looked at.

import { packageOf } from './package-url.ts'
import { type ImageContents, type Package, PackageList, Unreadable } from './packages.ts'

export type Json = Record<string, unknown>

/** No honest SBOM of the permitted size has as many; bounds what parsing it can cost in memory. */
const maxValues = 2_000_000
const [brace, bracket, comma] = ['{', '[', ','].map((mark) => mark.charCodeAt(0))

/** Throws Unreadable for anything that is not an SBOM in one of the formats. */
export function readSbom(bytes: Uint8Array): ImageContents {
  const document = parseSbom(bytes, maxValues)
  if (document.bomFormat === 'CycloneDX' && /^1\.[2-7]$/.test(textOf(document.specVersion))) return cycloneDx(document)
  if (/^SPDX-2\.[23]$/.test(textOf(document.spdxVersion))) return spdx2(document)
  if (/^https:\/\/spdx\.org\/rdf\/3\./.test(textOf(document['@context']))) return spdx3(document)
  throw new Unreadable('UNSUPPORTED', 'the SBOM is neither SPDX 2.2, 2.3 or 3.0 nor CycloneDX 1.2 to 1.7')
}

/** The document, whatever it holds. Throws Unreadable when it is not JSON or has more than `most` values. */
export function parseSbom(bytes: Uint8Array, most: number): Json {
  let values = 0
  for (const byte of bytes) if (byte === comma || byte === brace || byte === bracket) values++
  if (values > most) throw new Unreadable('LIMIT_EXCEEDED', `the SBOM has more than ${most} values`)
  return asObject(parse(new TextDecoder().decode(bytes)))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Unreadable('DAMAGED', 'the SBOM is not JSON')
  }
}

function cycloneDx(document: Json): ImageContents {
  const list = new PackageList()
  let distribution = { id: '', version: '' }
  // Components nest, so deep that recursion could not follow.
  const left = [objectsIn(document.components)]
  for (let components = left.pop(); components; components = left.pop()) {
    for (const component of components) {
      if (component.components) left.push(objectsIn(component.components))
      if (component.type === 'operating-system') distribution = distributionOf(component.name, component.version)
      const found = packageOf(textOf(component.purl))
      if (found) list.add(withTrivySource(found, component))
    }
  }
  return { packages: list.sorted(), distribution }
}

/** Trivy keeps the origin in properties of its own. */
function withTrivySource(found: Package, component: Json): Package {
  if (found.origin !== found.name) return found
  const properties = objectsIn(component.properties)
  const said = (name: string) =>
    textOf(properties.find((property) => property.name === `aquasecurity:trivy:${name}`)?.value)
  const [origin, version, release, epoch] = [said('SrcName'), said('SrcVersion'), said('SrcRelease'), said('SrcEpoch')]
  if (origin === '') return found
  const joined = `${epoch === '' ? '' : `${epoch}:`}${version}${release === '' ? '' : `-${release}`}`
  return { ...found, origin, originVersion: version === '' ? found.version : joined }
}

function spdx2(document: Json): ImageContents {
  const list = new PackageList()
  let distribution = { id: '', version: '' }
  for (const entry of objectsIn(document.packages)) {
    if (entry.primaryPackagePurpose === 'OPERATING-SYSTEM' || /^SPDXRef-OperatingSystem/.test(textOf(entry.SPDXID))) {
      distribution = distributionOf(entry.name, entry.versionInfo)
    }
    const reference = objectsIn(entry.externalRefs).find(({ referenceType }) => referenceType === 'purl')
    const found = packageOf(textOf(reference?.referenceLocator))
    if (found) list.add(withBuiltFrom(found, textOf(entry.sourceInfo)))
  }
  return { packages: list.sorted(), distribution }
}

/** Trivy says `built package from: <origin> <version>`. */
function withBuiltFrom(found: Package, sourceInfo: string): Package {
  const [, origin, originVersion] = /^built package from: (\S+) (\S+)$/.exec(sourceInfo) ?? []
  return found.origin === found.name && origin && originVersion ? { ...found, origin, originVersion } : found
}

function spdx3(document: Json): ImageContents {
  const list = new PackageList()
  for (const entry of objectsIn(document['@graph'])) {
    if (entry.type !== 'software_Package') continue
    const identifier = objectsIn(entry.externalIdentifier).find((one) => one.externalIdentifierType === 'packageUrl')
    const found = packageOf(textOf(entry.software_packageUrl ?? identifier?.identifier))
    if (found) list.add(found)
  }
  return { packages: list.sorted(), distribution: { id: '', version: '' } }
}

function distributionOf(name: unknown, version: unknown): ImageContents['distribution'] {
  return { id: textOf(name).slice(0, 128), version: textOf(version).slice(0, 128) }
}

export const asObject = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
export const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.map(asObject) : [])
