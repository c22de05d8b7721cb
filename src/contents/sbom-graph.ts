// Reads the components of an SBOM and their relations: SPDX 2.2 and 2.3, CycloneDX 1.2 to 1.7, in JSON.
import { asObject, type Json, objectsIn, textOf } from './json.ts'
import { Unreadable } from './packages.ts'
import { parseSbom, purlsOf } from './sbom.ts'

export type PackageNode = {
  id: string
  name: string
  version: string
  license: string
  description: string
  purl: string
}
export type FileNode = { id: string; name: string; types: string[] }
export type EdgeType = 'DESCRIBES' | 'CONTAINS' | 'DEPENDS_ON' | 'GENERATED_FROM' | 'UNKNOWN'
export type Edge = { subject: string; predicate: string; type: EdgeType }

export type SbomGraph = {
  format: 'spdx' | 'cyclonedx'
  name: string
  tool: string
  authors: string
  /** Creation time as written in the document. */
  created: string
  packages: PackageNode[]
  files: FileNode[]
  edges: Edge[]
}

/** Limits of a graph. Repeated values are counted each time, because a document can repeat a long id many times. */
const limits = { values: 500_000, elements: 200_000, characters: 32 * 2 ** 20 }

/**
 * Reads the graph of an SBOM. Undefined for a document in another format. Throws Unreadable if the document is not JSON or too
 * large.
 */
export function sbomGraph(bytes: Uint8Array): SbomGraph | undefined {
  const document = parseSbom(bytes, limits.values)
  const isSpdx = /^SPDX-2\.[23]$/.test(textOf(document.spdxVersion))
  const graph = isSpdx ? spdx(document) : document.bomFormat === 'CycloneDX' ? cycloneDx(document) : undefined
  return graph
}

/** Counts the parts of a graph. Throws Unreadable above the limits of real documents. */
function counter() {
  let [elements, characters] = [0, 0]
  return <T extends object>(element: T): T => {
    elements++
    for (const text of Object.values(element)) characters += (text as string | string[]).toString().length
    if (elements > limits.elements || characters > limits.characters) {
      throw new Unreadable(
        'LIMIT_EXCEEDED',
        `the SBOM has more than ${limits.elements} components and relations, or ${limits.characters} characters`,
      )
    }
    return element
  }
}

const relations: Record<string, EdgeType> = {
  DESCRIBES: 'DESCRIBES',
  CONTAINS: 'CONTAINS',
  DEPENDS_ON: 'DEPENDS_ON',
  GENERATED_FROM: 'GENERATED_FROM',
}
const inverses: Record<string, EdgeType> = {
  DESCRIBED_BY: 'DESCRIBES',
  CONTAINED_BY: 'CONTAINS',
  DEPENDENCY_OF: 'DEPENDS_ON',
  GENERATES: 'GENERATED_FROM',
}

function spdx(document: Json): SbomGraph {
  const count = counter()
  const { created, creators } = asObject(document.creationInfo)
  const creatorsOf = (kind: string) =>
    textsIn(creators).flatMap((text) => (text.startsWith(`${kind}: `) ? [text.slice(kind.length + 2)] : []))
  return {
    format: 'spdx',
    name: textOf(document.name),
    tool: creatorsOf('Tool').join(', '),
    authors: [...creatorsOf('Person'), ...creatorsOf('Organization')].join(', '),
    created: textOf(created),
    packages: objectsIn(document.packages).map((one) =>
      count({
        id: textOf(one.SPDXID),
        name: textOf(one.name),
        version: textOf(one.versionInfo),
        license: [textOf(one.licenseConcluded), textOf(one.licenseDeclared)].find(isAsserted) ?? '',
        description: textOf(one.description) || textOf(one.summary),
        purl: purlsOf(one)[0] ?? '',
      }),
    ),
    files: objectsIn(document.files).map((one) =>
      count({ id: textOf(one.SPDXID), name: textOf(one.fileName), types: textsIn(one.fileTypes) }),
    ),
    edges: objectsIn(document.relationships).map((one) => {
      const [from, to, word] = [textOf(one.spdxElementId), textOf(one.relatedSpdxElement), textOf(one.relationshipType)]
      const inverse = Object.hasOwn(inverses, word) ? inverses[word] : undefined
      if (inverse) return count({ subject: to, predicate: from, type: inverse })
      const type = (Object.hasOwn(relations, word) ? relations[word] : undefined) ?? 'UNKNOWN'
      return count({ subject: from, predicate: to, type })
    }),
  }
}

const isAsserted = (license: string): boolean => !['', 'NOASSERTION', 'NONE'].includes(license)

function cycloneDx(document: Json): SbomGraph {
  const count = counter()
  const metadata = asObject(document.metadata)
  const named = (one: Json) => [textOf(one.name), textOf(one.version)].filter(Boolean).join('-')
  const tools = Array.isArray(metadata.tools) ? metadata.tools : asObject(metadata.tools).components
  const main = asObject(metadata.component)
  const [packages, edges]: [PackageNode[], Edge[]] = [[], []]
  // Components can be nested too deeply for recursion.
  const left = [{ within: '', components: metadata.component ? [main] : [] }]
  left.push({ within: '', components: objectsIn(document.components) })
  for (let some = left.pop(); some; some = left.pop()) {
    for (const one of some.components) {
      const id = textOf(one['bom-ref']) || textOf(one.purl)
      const [name, version, description, purl] = ['name', 'version', 'description', 'purl'].map((key) =>
        textOf(one[key]),
      )
      const node = {
        id,
        name: name!,
        version: version!,
        license: licenseOf(one),
        description: description!,
        purl: purl!,
      }
      packages.push(count(node))
      if (some.within !== '') edges.push(count({ subject: some.within, predicate: id, type: 'CONTAINS' as const }))
      if (one.components) left.push({ within: id, components: objectsIn(one.components) })
    }
  }
  for (const { ref, dependsOn } of objectsIn(document.dependencies)) {
    for (const predicate of textsIn(dependsOn)) {
      edges.push(count({ subject: textOf(ref), predicate, type: 'DEPENDS_ON' as const }))
    }
  }
  return {
    format: 'cyclonedx',
    name: textOf(main.name),
    tool: objectsIn(tools).map(named).join(', '),
    authors: objectsIn(metadata.authors).map(named).join(', '),
    created: textOf(metadata.timestamp),
    packages,
    files: [],
    edges,
  }
}

function licenseOf({ licenses }: Json): string {
  const expressions = objectsIn(licenses).map(({ expression, license }) => {
    const { id, name } = asObject(license)
    return textOf(expression) || textOf(id) || textOf(name)
  })
  return expressions.filter(Boolean).join(' AND ')
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
