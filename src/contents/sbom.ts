// Reads the packages of an SBOM. The formats are SPDX 2.2, 2.3 and 3.0 and CycloneDX 1.2 to 1.7 in JSON, plain or in an in-toto
// statement. Only entries with a package URL become packages, because the package kind is only in the package URL. Every other
// package is a coverage gap.

import { asObject, type Json, objectsIn, parseJson, textOf } from './json.ts'
import { type ImageContents, isOfDistribution, type Package, Unreadable } from './packages.ts'
import { envelopeIn, isInToto, isSigstoreBundle, subjectsOf } from './reports/envelope.ts'
import { SbomEntries } from './sbom-entries.ts'

/** Limit on the JSON values of an SBOM, which also limits the memory for parsing. Real SBOMs have fewer values. */
const maxValues = 2_000_000

/**
 * Contents of an SBOM. If the SBOM is in an in-toto statement, `subjects` are the digests of its subjects, and `sealed` is true
 * if it was in an envelope.
 */
export type SbomContents = ImageContents & { subjects?: string[]; sealed?: boolean }

/** True if an in-toto predicate of this type is an SBOM. */
export const isSbomType = (predicateType: string): boolean =>
  /^https:\/\/(?:spdx\.dev\/Document|cyclonedx\.org\/(?:bom|schema)|syft\.dev\/bom)/i.test(predicateType)

/**
 * Reads a plain SBOM, or an SBOM in an in-toto statement, in a DSSE envelope or in a Sigstore bundle. Returns undefined for a
 * statement of another kind, and for a signature. Throws Unreadable if the bytes are not an SBOM in a supported format.
 */
export function readSbom(bytes: Uint8Array): SbomContents | undefined {
  const document = parseSbom(bytes, maxValues)
  if (isSignature(document)) return undefined
  const envelope = envelopeIn(document)
  const statement = envelope ? parseJson(envelope.payload, maxValues, 'statement') : document
  if (!isInToto(statement)) return envelope ? undefined : contentsIn(statement)
  if (!isSbomType(textOf(statement.predicateType))) return undefined
  const contents = contentsIn(predicateOf(statement))
  return { ...contents, subjects: subjectsOf(statement), sealed: envelope !== undefined }
}

/** True if a bundle or an envelope has no in-toto statement. Then it is a signature of something else. */
function isSignature(document: Json): boolean {
  const isBundle = isSigstoreBundle(document)
  const { payload, payloadType } = isBundle ? asObject(document.dsseEnvelope) : document
  if (payload === undefined) return isBundle
  return typeof payloadType === 'string' && payloadType !== 'application/vnd.in-toto+json'
}

/** Predicate of a statement. Earlier versions of cosign store the SBOM as a text. */
function predicateOf({ predicate }: Json): Json {
  const text = typeof predicate === 'string' ? predicate : asObject(predicate).Data
  return typeof text === 'string' ? parseJson(Buffer.from(text), maxValues, 'SBOM') : asObject(predicate)
}

function contentsIn(document: Json): ImageContents {
  if (document.bomFormat === 'CycloneDX' && /^1\.[2-7]$/.test(textOf(document.specVersion))) return cycloneDx(document)
  if (/^SPDX-2\.[23]$/.test(textOf(document.spdxVersion))) return spdx2(document)
  const contexts = [document['@context']].flat().map(textOf)
  if (contexts.some((one) => /^https:\/\/spdx\.org\/rdf\/3\./.test(one))) return spdx3(document)
  throw new Unreadable(
    'UNSUPPORTED',
    'the format of the SBOM is not supported; supported are SPDX 2.2, 2.3 and 3.0, and CycloneDX 1.2 to 1.7',
  )
}

/** Parses a JSON document. Throws Unreadable if the text is not JSON or has more than `most` values. */
export const parseSbom = (bytes: Uint8Array, most: number): Json => parseJson(bytes, most, 'SBOM')

/** Components of these types are packages only if they have a package URL. */
const otherComponents: ReadonlySet<string> = new Set(
  'container cryptographic-asset data device file operating-system'.split(' '),
)

/**
 * Entries of a list. An entry that is not an object becomes an empty one, so it counts as a package without a package URL. Some
 * tools write a single entry without the list.
 */
const entriesIn = (list: unknown): Json[] => objectsIn([list ?? []].flat())

function cycloneDx(document: Json): ImageContents {
  const entries = new SbomEntries()
  const [main] = entriesIn(asObject(document.metadata).component)
  // Components can be nested too deeply for recursion.
  const left = [main ? [main] : [], entriesIn(document.components)]
  for (let components = left.pop(); components; components = left.pop()) {
    for (const component of components) {
      if (component.components) left.push(entriesIn(component.components))
      addComponent(entries, component, component === main)
    }
  }
  return entries.contents()
}

function addComponent(entries: SbomEntries, component: Json, isMain: boolean): void {
  const [type, name, version, purl] = ['type', 'name', 'version', 'purl'].map((key) => textOf(component[key]))
  if (type === 'operating-system') entries.setDistribution(name!, version!)
  // An application without a version is a list of packages, such as a lock file.
  const isApplication = type === 'application' && version === ''
  const isPackage = !isMain && !otherComponents.has(type!) && !isApplication
  const hasCpe = textOf(component.cpe) !== '' && type !== 'operating-system'
  const entry = { purls: purl === '' ? [] : [purl!], name: name!, version: version!, isPackage: isPackage || hasCpe }
  entries.add(entry, (found) => withTrivySource(found, component))
}

/** Adds the source package that Trivy stores in special properties. */
function withTrivySource(found: Package, component: Json): Package {
  if (!isOfDistribution(found) || found.origin !== found.name) return found
  const properties = objectsIn(component.properties)
  const trivyProperty = (name: string) =>
    textOf(properties.find((property) => property.name === `aquasecurity:trivy:${name}`)?.value)
  const [origin, version, release, epoch] = [
    trivyProperty('SrcName'),
    trivyProperty('SrcVersion'),
    trivyProperty('SrcRelease'),
    trivyProperty('SrcEpoch'),
  ]
  if (origin === '') return found
  const joined = `${epoch === '' ? '' : `${epoch}:`}${version}${release === '' ? '' : `-${release}`}`
  return { ...found, origin, originVersion: version === '' ? found.version : joined }
}

/** Purposes of elements that are not packages, in SPDX 2 and 3. */
const otherPurposes: ReadonlySet<string> = new Set([
  ...['bom', 'container', 'data', 'device', 'diskimage', 'documentation', 'evidence', 'file', 'filesystemimage'],
  ...['manifest', 'operating-system', 'operatingsystem', 'requirement', 'specification'],
])

/**
 * True if an element with this purpose is a package. An application without a version is a list of packages, such as a lock file.
 */
function isPackage(purpose: unknown, version: string): boolean {
  const word = textOf(purpose).toLowerCase()
  return word === 'application' ? version !== '' : !otherPurposes.has(word)
}

/** True for ids that Trivy and Syft give elements that are not packages. Used if the element has no purpose. */
function standsForOther(id: string, version: string): boolean {
  const [, word] =
    /^SPDXRef-(OperatingSystem|Application|ContainerImage|Filesystem|Repository|DocumentRoot)\b/.exec(id) ?? []
  return word === 'Application' || word === 'Repository' ? version === '' : word !== undefined
}

/** True if an SPDX reference is a package URL. The type is a word in capitals, or the URL of this type. */
const isPurl = ({ type, locator }: Reference): boolean => isOfType('purl', type) || /^pkg:/i.test(locator)
const isCpe = ({ type }: Reference): boolean => isOfType('cpe22type', type) || isOfType('cpe23type', type)

type Reference = { type: string; locator: string }

const isOfType = (word: string, type: string): boolean =>
  type.toLowerCase().replace(/\/$/, '').split(/[/#]/).at(-1) === word

const referencesOf = (entry: Json): Reference[] =>
  objectsIn(entry.externalRefs).map((one) => {
    return { type: textOf(one.referenceType), locator: textOf(one.referenceLocator).trim() }
  })

/** The package URLs of a package in SPDX 2. */
export const purlsOf = (entry: Json): string[] =>
  referencesOf(entry)
    .filter(isPurl)
    .map(({ locator }) => locator)

function spdx2(document: Json): ImageContents {
  const entries = new SbomEntries()
  const { documentDescribes } = document
  const described = new Set([
    ...(Array.isArray(documentDescribes) ? documentDescribes.map(textOf) : []),
    ...objectsIn(document.relationships)
      .filter(({ relationshipType }) => relationshipType === 'DESCRIBES')
      .map(({ relatedSpdxElement }) => textOf(relatedSpdxElement)),
  ])
  const packages = entriesIn(document.packages)
  const image = onlyOne(packages.filter(({ SPDXID }) => described.has(textOf(SPDXID))))
  for (const entry of packages) {
    const [id, name, version] = [textOf(entry.SPDXID), textOf(entry.name), textOf(entry.versionInfo)]
    const isSystem = entry.primaryPackagePurpose === 'OPERATING-SYSTEM' || /^SPDXRef-OperatingSystem/.test(id)
    if (isSystem) entries.setDistribution(name, version)
    const isPart = isPackage(entry.primaryPackagePurpose, version) && entry !== image && !standsForOther(id, version)
    const hasCpe = !isSystem && referencesOf(entry).some(isCpe)
    entries.add({ purls: purlsOf(entry), name, version, isPackage: isPart || hasCpe }, (found) =>
      withBuiltFrom(found, textOf(entry.sourceInfo)),
    )
  }
  return entries.contents()
}

/**
 * The element for the image, if the document describes exactly one element. If it describes several, each of them is a package.
 */
const onlyOne = (roots: readonly Json[]): Json | undefined => (roots.length === 1 ? roots[0] : undefined)

/** Adds the source package from the text that Trivy writes: `built package from: <origin> <version>`. */
function withBuiltFrom(found: Package, sourceInfo: string): Package {
  const [, origin, originVersion] = /^built package from: (\S+) (\S+)$/.exec(sourceInfo) ?? []
  return isOfDistribution(found) && found.origin === found.name && origin && originVersion
    ? { ...found, origin, originVersion }
    : found
}

const packageTypes: ReadonlySet<string> = new Set(['software_Package', 'ai_AIPackage', 'dataset_DatasetPackage'])

function spdx3(document: Json): ImageContents {
  const entries = new SbomEntries()
  const graph = entriesIn(document['@graph'] ?? document)
  const roots = new Set(graph.flatMap(({ rootElement }) => [rootElement].flat().map(textOf).filter(Boolean)))
  // Every element has a type, so one without a type may be a package.
  const packages = graph.filter(({ type = 'software_Package' }) =>
    [type].flat().some((one) => packageTypes.has(textOf(one))),
  )
  const image = onlyOne(packages.filter(({ spdxId }) => roots.has(textOf(spdxId))))
  for (const entry of packages) {
    const [name, version] = [textOf(entry.name), textOf(entry.software_packageVersion)]
    const purpose = entry.software_primaryPurpose
    if (purpose === 'operatingSystem') entries.setDistribution(name, version)
    const identifiers = objectsIn(entry.externalIdentifier).map((one) => {
      return { type: textOf(one.externalIdentifierType), locator: textOf(one.identifier).trim() }
    })
    const purls = identifiers.filter(({ type, locator }) => isOfType('packageurl', type) || /^pkg:/i.test(locator))
    const isPart = isPackage(purpose, version) && entry !== image
    const hasCpe = purpose !== 'operatingSystem' && identifiers.some(({ type }) => /^cpe2[23]$/.test(type))
    entries.add({
      purls: [textOf(entry.software_packageUrl).trim(), ...purls.map(({ locator }) => locator)].filter(Boolean),
      ...{ name, version, isPackage: isPart || hasCpe },
    })
  }
  return entries.contents()
}
