// Writes the findings of an image as CycloneDX, https://cyclonedx.org/docs/1.6/json, with accepted risks as their analysis.
import { severityNames, uuidOf } from '../reports/cyclone-dx.service.ts'
import { actionOf, gapText, hashOf, type StatedImage, type Statement } from './exports.model.ts'

export function toCycloneDx(image: StatedImage): object {
  const { digest, path, purl, time, tool, statements, gaps } = image
  const components = new Map(statements.flatMap(({ packages }) => packages.map((one) => [one.purl, one] as const)))
  const { algorithm, digits } = hashOf(digest)
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([digest, path, time]))}`,
    version: 1,
    metadata: {
      timestamp: time,
      tools: { components: [{ type: 'application', ...tool }] },
      component: {
        ...{ type: 'container', 'bom-ref': digest, name: path, version: digest, purl },
        hashes: [{ alg: algorithm === 'sha512' ? 'SHA-512' : 'SHA-256', content: digits }],
      },
      ...(gaps.length === 0 ? {} : { properties: gaps.map((gap) => ({ name: 'coverage gap', value: gapText(gap) })) }),
    },
    components: [...components.values()]
      .sort((one, other) => (one.purl < other.purl ? -1 : 1))
      .map(({ purl: ref, name, version }) => ({ type: 'library', 'bom-ref': ref, name, version, purl: ref })),
    // The document lists only components with findings. With coverage gaps, vulnerabilities may be missing too.
    compositions: [
      { aggregate: 'incomplete', assemblies: [digest] },
      ...(gaps.length === 0 || statements.length === 0
        ? []
        : [{ aggregate: 'incomplete', vulnerabilities: statements.map(refOf) }]),
    ],
    vulnerabilities: statements.map(vulnerabilityOf),
  }
}

const refOf = (one: Statement): string =>
  `${one.vulnerability} ${uuidOf(JSON.stringify([one.vulnerability, one.status, one.note]))}`

function vulnerabilityOf(one: Statement): object {
  const { vulnerability, aliases, summary, severity, cvss, references, records, packages, since } = one
  return {
    'bom-ref': refOf(one),
    id: vulnerability,
    references: aliases.map((alias) => ({ id: alias, source: { name: alias.split('-')[0] } })),
    ratings: [
      { severity: severityNames.get(severity) ?? 'unknown' },
      ...cvss.map(({ vector, score }) => ({ ...(score === undefined ? {} : { score }), vector })),
    ],
    ...(summary === '' ? {} : { description: summary }),
    ...(one.status === 'affected' ? { recommendation: actionOf(one) } : { analysis: analysisOf(one) }),
    advisories: references.map((url) => ({ url })),
    affects: packages.map(({ purl }) => ({ ref: purl })),
    properties: [
      { name: 'found since', value: since },
      ...records.map(({ source, id }) => ({ name: 'record', value: `${source} ${id}` })),
    ],
  }
}

/** After a member accepts a risk, the image still has the vulnerability. */
function analysisOf({ status, note }: Statement): object {
  if (status === 'accepted') return { state: 'exploitable', response: ['will_not_fix'], detail: note }
  return { state: status === 'suppressed' ? 'not_affected' : 'in_triage', detail: note }
}
