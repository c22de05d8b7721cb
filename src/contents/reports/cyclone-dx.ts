// Reader of CycloneDX documents with vulnerabilities, version 1.4 and later.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Findings, fixes, type ScanReport, scoreOf, severityOf, timeOf, worseOf } from './scan-report.ts'
import { statementsOfCycloneDx } from './vex.ts'

/**
 * True for a CycloneDX document with vulnerabilities. A document with an empty list is no report, because Trivy writes an empty
 * list into SBOMs without a scan.
 */
export const isCycloneDx = (document: Json): boolean =>
  document.bomFormat === 'CycloneDX' && objectsIn(document.vulnerabilities).length > 0

type Component = { purl: unknown; name: unknown; version: unknown }

export function readCycloneDx(document: Json): ScanReport {
  const components = componentsOf(document)
  const found = new Findings()
  for (const one of objectsIn(document.vulnerabilities)) {
    const ratings = objectsIn(one.ratings)
    const source = asObject(one.source)
    const update = textOf(one.recommendation)
    const affects = objectsIn(one.affects)
    const entry = {
      id: textOf(one.id),
      aliases: objectsIn(one.references).map(({ id }) => textOf(id)),
      summary: one.description,
      details: detailsOf(one),
      severity: severityIn(source.name, ratings),
      cvss: ratings.flatMap(({ source: by, method, vector, score }) => {
        return scoreOf(asObject(by).name, /^CVSSv(\d)/.exec(textOf(method))?.[1] ?? '', vector, score) ?? []
      }),
      fix: fixIn(update, objectsIn(one.affects)),
      references: [source.url, ...objectsIn(one.advisories).map(({ url }) => url)],
      record: { source: source.name, url: source.url },
    }
    if (affects.length === 0) found.add(entry)
    for (const { ref } of affects) {
      const component = componentAt(components, textOf(ref))
      found.add(component ? { ...entry, package: component } : entry)
    }
  }
  const [tool] = toolsOf(document)
  const statements = statementsOfCycloneDx(document, (reference) => textOf(componentAt(components, reference)?.purl))
  return {
    ...(statements.length > 0 && { statements }),
    format: 'cyclonedx',
    tool: { name: textOf(tool?.name).toLowerCase(), version: textOf(tool?.version) },
    dbBuildTime: timeOf(''),
    writeTime: timeOf(asObject(document.metadata).timestamp),
    vulnerabilities: found.all(),
  }
}

/** A reference to a component of another document ends with the id of the component. */
const componentAt = (components: ReadonlyMap<string, Component>, name: string): Component | undefined =>
  components.get(name) ?? components.get(name.slice(name.lastIndexOf('#') + 1))

function componentsOf(document: Json): Map<string, Component> {
  const found = new Map<string, Component>()
  // Components can be nested too deeply for recursion.
  const left = [objectsIn(document.components), [asObject(asObject(document.metadata).component)]]
  for (let some = left.pop(); some; some = left.pop()) {
    for (const component of some) {
      if (component.components) left.push(objectsIn(component.components))
      const { 'bom-ref': ref, purl, name, version } = component
      if (typeof ref === 'string') found.set(ref, { purl, name, version })
    }
  }
  return found
}

/** Severity from the source of the vulnerability. If that source states none, the worst severity of all ratings. */
function severityIn(source: unknown, ratings: readonly Json[]): number {
  const by = ratings.find((rating) => asObject(rating.source).name === source)
  const rated = by ? severityOf(by.severity) : 0
  return rated !== 0 ? rated : ratings.map(({ severity }) => severityOf(severity)).reduce(worseOf, 0)
}

/** Details with the analysis. The analysis is only text here and hides no finding. */
function detailsOf({ detail, analysis }: Json): string {
  const { state, justification, detail: why } = asObject(analysis)
  const analysed = [state, justification, why].map(textOf).filter((text) => text !== '')
  const summary = analysed.length === 0 ? '' : `Analysis of the report: ${analysed.join(', ')}.`
  return [textOf(detail), summary].filter((text) => text !== '').join('\n')
}

function fixIn(update: string, affects: readonly Json[]): { state: 0 | 1; versions: string[] } {
  const unaffected = affects.flatMap(({ versions }) => {
    return objectsIn(versions).flatMap(({ status, version }) => (status === 'unaffected' ? textOf(version) : []))
  })
  // Trivy and Pinfold write the fix as a sentence on the last line.
  const line = update.split(/[\n\r\u2028\u2029]/).at(-1)!
  const begin = /\b(?:to version|[Uu]pdate to) (?=\S)/.exec(line)
  const remainder = begin ? line.slice(begin.index + begin[0].length) : ''
  const named = remainder
    .split(/; | or |, /)
    .map((text) => /^(?:Upgrade .* to version )?(\S+)$/.exec(text.trim())?.[1] ?? '')
  const versions = [...new Set([...unaffected, ...named])].filter((text) => text !== '')
  return { state: versions.length > 0 ? fixes.fixed : fixes.unknown, versions }
}

function toolsOf(document: Json): Json[] {
  const { tools } = asObject(document.metadata)
  return Array.isArray(tools) ? objectsIn(tools) : objectsIn(asObject(tools).components)
}
