// Reports of real scanners, compared with their files field by field.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Unreadable } from '../packages.ts'
import { readScanReport } from './read-report.ts'
import type { FoundVulnerability } from './scan-report.ts'

const file = (name: string): Buffer =>
  readFileSync(new URL(`../../../test/data/scan-reports/${name}.json`, import.meta.url))
const levels = { NEGLIGIBLE: 5, LOW: 1, MEDIUM: 2, HIGH: 3, CRITICAL: 4, UNKNOWN: 0 } as Record<string, number>
const packed = (value: unknown) => Buffer.from(JSON.stringify(value))

type TrivyVulnerability = {
  VulnerabilityID: string
  PkgIdentifier: { PURL: string }
  PkgName: string
  InstalledVersion: string
  FixedVersion?: string
  Severity: string
  Title?: string
  CVSS?: Record<string, { V3Vector?: string; V3Score?: number; V2Vector?: string; V2Score?: number }>
}

for (const name of [
  'alpine-39',
  'alpine-310',
  'debian-stretch',
  'ubuntu-1804',
  'gomod',
  'distroless-python27',
  'centos-7',
]) {
  test(`keeps all data in the Trivy report of ${name}`, () => {
    const bytes = file(`trivy-${name}`)
    const report = readScanReport(bytes)
    assert.deepEqual([report.format, report.tool], ['trivy', { name: 'trivy', version: 'dev' }])
    const given = JSON.parse(bytes.toString()).Results.flatMap(
      (result: { Vulnerabilities?: TrivyVulnerability[] }) => result.Vulnerabilities ?? [],
    ) as TrivyVulnerability[]
    const byId = new Map(report.vulnerabilities.map((one) => [one.id, one]))
    assert.deepEqual([...byId.keys()], [...new Set(given.map((one) => one.VulnerabilityID))].sort())
    for (const one of given) {
      const found = byId.get(one.VulnerabilityID) as FoundVulnerability
      assert.ok(found.packages.some(({ purl }) => purl === one.PkgIdentifier.PURL))
      assert.ok(found.packages.some((has) => has.name === one.PkgName && has.version === one.InstalledVersion))
      assert.equal(found.severity, levels[one.Severity])
      for (const version of one.FixedVersion?.split(', ') ?? []) assert.ok(found.fix.versions.includes(version))
      if (one.Title) assert.equal(found.summary, one.Title)
      for (const [source, { V3Vector, V3Score }] of Object.entries(one.CVSS ?? {})) {
        if (V3Vector) {
          const score = found.cvss.find((cvss) => cvss.source === source && cvss.vector === V3Vector)
          assert.deepEqual([score?.type, score?.score], ['CVSS_V3', V3Score])
        }
      }
    }
  })
}

test('maps fix states of Trivy to those of version 1', () => {
  const one = (Status: string) => {
    const Vulnerabilities = [
      { VulnerabilityID: 'CVE-2026-1', PkgName: 'a', InstalledVersion: '1', Severity: 'LOW', Status },
    ]
    return readScanReport(packed({ SchemaVersion: 2, Results: [{ Vulnerabilities }] })).vulnerabilities[0]!.fix.state
  }
  assert.deepEqual(['affected', 'will_not_fix', 'end_of_life', 'fix_deferred', 'odd'].map(one), [2, 3, 3, 2, 0])
})

test('a Grype report keeps package URLs, files, scores, advisories and the age of its database', () => {
  const report = readScanReport(file('grype-rhel8-excerpt'))
  assert.deepEqual(
    [report.format, report.tool.version, report.dbBuildTime],
    ['grype', '0.96.0', '2024-02-22T01:23:26.000Z'],
  )
  const one = report.vulnerabilities.find(({ id }) => id === 'CVE-2023-38473')!
  assert.equal(one.severity, levels.MEDIUM)
  assert.deepEqual(one.fix, { state: 1, versions: ['0:0.7-21.el8_9.1'] })
  assert.deepEqual(one.locations, ['/var/lib/rpm/Packages'])
  assert.ok(one.packages[0]!.purl.startsWith('pkg:rpm/rhel/avahi-libs@0.7-20.el8?'))
  assert.ok(one.references.includes('https://access.redhat.com/errata/RHSA-2023:7836'))
  assert.deepEqual(
    one.cvss.map(({ source, score }) => [source, score]),
    [
      ['redhat:distro:redhat:8', 6.2],
      ['nvd@nist.gov', 5.5],
      ['secalert@redhat.com', 6.2],
    ],
  )
})

test('a package without a package URL gets one from its name and version', () => {
  const [one] = readScanReport(file('grype-image-synthetic')).vulnerabilities
  assert.deepEqual(one?.packages, [{ purl: 'pkg:generic/package-1@1.1.1', name: 'package-1', version: '1.1.1' }])
  assert.deepEqual(one?.fix.versions, ['1.2.1', '2.1.3', '3.4.0'])
})

test('identifies a vulnerability by its CVE, if the scanner names one', () => {
  const match = (id: string, ...related: string[]) => ({
    vulnerability: { id, severity: 'High' },
    relatedVulnerabilities: related.map((other) => ({ id: other })),
    artifact: { name: 'a', version: '1' },
  })
  const matches = [
    match('GHSA-aaaa-bbbb-cccc', 'CVE-2026-1'),
    match('CVE-2026-1'),
    match('ELSA-1', 'CVE-2026-2', 'CVE-2026-3'),
  ]
  const { vulnerabilities } = readScanReport(packed({ matches, descriptor: { name: 'grype' } }))
  assert.deepEqual(
    vulnerabilities.map(({ id, aliases }) => [id, aliases]),
    [
      ['CVE-2026-1', ['GHSA-aaaa-bbbb-cccc']],
      ['ELSA-1', ['CVE-2026-2', 'CVE-2026-3']],
    ],
  )
})

test('reads ratings, fixes and affected components from CycloneDX', () => {
  const { format, tool, vulnerabilities } = readScanReport(file('trivy-npm.cdx'))
  assert.deepEqual([format, tool.name, vulnerabilities.length], ['cyclonedx', 'trivy', 1])
  const [one] = vulnerabilities
  assert.deepEqual([one?.id, one?.severity, one?.fix], ['CVE-2019-11358', 2, { state: 1, versions: ['3.4.0'] }])
  assert.deepEqual(one?.packages, [{ purl: 'pkg:npm/jquery@3.3.9', name: 'jquery', version: '3.3.9' }])
})

test('keeps a vulnerability dismissed in a CycloneDX analysis, with this analysis', () => {
  const analysis = { state: 'not_affected', justification: 'code_not_reachable' }
  const document = { bomFormat: 'CycloneDX', specVersion: '1.6', vulnerabilities: [{ id: 'CVE-2026-1', analysis }] }
  const [one] = readScanReport(packed(document)).vulnerabilities
  assert.deepEqual([one?.id, one?.details], ['CVE-2026-1', 'Analysis of the report: not_affected, code_not_reachable.'])
})

test('an SBOM with an empty list of vulnerabilities is not a report without findings', () => {
  assert.throws(() => readScanReport(file('trivy-no-vulnerabilities.cdx')), unreadable('UNSUPPORTED'))
})

test('reads vulnerabilities and their severities from SARIF', () => {
  const report = readScanReport(file('trivy-alpine-310.sarif'))
  assert.deepEqual([report.format, report.tool.name], ['sarif', 'trivy'])
  assert.deepEqual(
    report.vulnerabilities.map(({ id, severity, packages }) => [id, severity, packages.length]),
    [
      ['CVE-2019-1549', levels.MEDIUM, 0],
      ['CVE-2019-1551', levels.MEDIUM, 0],
    ],
  )
})

test('a report without a vulnerability scan is not a report without findings', () => {
  const trivy = (...classes: string[]) =>
    packed({ SchemaVersion: 2, ArtifactName: 'a', Results: classes.map((Class) => ({ Class })) })
  assert.deepEqual(readScanReport(trivy('os-pkgs', 'secret')).vulnerabilities, [])
  const none = [
    trivy(),
    trivy('secret'),
    trivy('config'),
    trivy('os-pkgs', 'license'),
    packed({ SchemaVersion: 2, ArtifactName: 'a' }),
  ]
  const sarif = (...ids: string[]) =>
    packed({
      version: '2.1.0',
      runs: [{ tool: { driver: { name: 'x' } }, results: ids.map((ruleId) => ({ ruleId })) }],
    })
  for (const one of [...none, sarif(), sarif('js/sql-injection', 'DS002')]) {
    assert.throws(() => readScanReport(one), unreadable('NOT_SCANNED'))
  }
  const mixed = readScanReport(sarif('aws-access-key-id', 'CVE-2026-1-openssl', 'RUSTSEC-2026-1', 'ALPINE-CVE-2026-2'))
  assert.deepEqual(
    mixed.vulnerabilities.map(({ id }) => id),
    ['ALPINE-CVE-2026-2', 'CVE-2026-1', 'RUSTSEC-2026-1'],
  )
})

test('reads a report inside an in-toto statement or a cosign record like the plain report', () => {
  const inner = JSON.parse(file('trivy-alpine-39').toString())
  const scan = { scanner: { version: 'v0.70.0', result: inner, db: { lastUpdate: '2026-03-01T00:00:00Z' } } }
  const statement = { _type: 'https://in-toto.io/Statement/v1', predicate: scan }
  const payload = Buffer.from(JSON.stringify(statement)).toString('base64')
  for (const document of [scan, statement, { payloadType: 'application/vnd.in-toto+json', payload }]) {
    const report = readScanReport(packed(document))
    assert.deepEqual([report.vulnerabilities.length, report.dbBuildTime], [3, '2026-03-01T00:00:00.000Z'])
  }
})

const unreadable = (reason: string) => (error: unknown) => error instanceof Unreadable && error.reason === reason

test('reports a document as unreadable if it is not a report or above a limit, and never crashes', () => {
  for (const document of ['', 'null', '[]', '{}', '{"SchemaVersion":2}', '{"matches":{}}', '"x"', '{"runs":[]}']) {
    assert.throws(() => readScanReport(Buffer.from(document)), Unreadable, document)
  }
  const withIds = (ids: readonly unknown[]) =>
    packed({ SchemaVersion: 2, Results: [{ Vulnerabilities: ids.map((VulnerabilityID) => ({ VulnerabilityID })) }] })
  for (const id of ['', 7, null, 'a b', 'x'.repeat(200), '\u0000']) {
    assert.throws(() => readScanReport(withIds([id])), unreadable('DAMAGED'))
  }
  const many = Array.from({ length: 50_001 }, (_, i) => `CVE-2026-${i}`)
  assert.throws(() => readScanReport(withIds(many)), unreadable('LIMIT_EXCEEDED'))
  const packages = Array.from({ length: 1001 }, (_, i) => ({ VulnerabilityID: 'CVE-2026-1', PkgName: `p${i}` }))
  const wide = packed({ SchemaVersion: 2, Results: [{ Vulnerabilities: packages }] })
  assert.throws(() => readScanReport(wide), unreadable('LIMIT_EXCEEDED'))
  const odd = {
    VulnerabilityID: 'CVE-2026-1',
    References: ['javascript:alert(1)', 7, 'https://ok.test/'],
    CVSS: { a: 3 },
  }
  const [one] = readScanReport(packed({ SchemaVersion: 2, Results: [{ Vulnerabilities: [odd] }] })).vulnerabilities
  assert.deepEqual([one?.references, one?.cvss], [['https://ok.test/'], []])
})
