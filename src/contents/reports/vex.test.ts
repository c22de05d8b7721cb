// Statements from OpenVEX and from CycloneDX analyses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Unreadable } from '../packages.ts'
import { readScanReport } from './read-report.ts'

const packed = (document: object): Uint8Array => Buffer.from(JSON.stringify(document))
const openVex = (statements: readonly object[], more: object = {}): Uint8Array =>
  packed({ '@context': 'https://openvex.dev/ns/v0.2.0', author: 'Acme', version: 1, statements, ...more })
const one = { vulnerability: { name: 'CVE-2026-1' }, status: 'not_affected' }
const refused = (bytes: Uint8Array, reason: string) =>
  assert.throws(
    () => readScanReport(bytes),
    (error) => error instanceof Unreadable && error.reason === reason,
  )

test('reads statements from OpenVEX, but no found vulnerabilities', () => {
  const timestamp = '2026-01-02T03:04:05Z'
  const statement = {
    vulnerability: { name: 'CVE-2026-1', aliases: ['GHSA-1'] },
    products: [{ '@id': 'pkg:oci/app@sha256:1', subcomponents: [{ '@id': 'pkg:apk/alpine/zlib@1' }] }, 'pkg:npm/left'],
    ...{ status: 'not_affected', justification: 'vulnerable_code_not_present', impact_statement: 'It is left out.' },
  }
  const { format, tool, dbBuildTime, vulnerabilities, statements } = readScanReport(openVex([statement], { timestamp }))
  assert.deepEqual([format, tool, vulnerabilities], ['openvex', { name: 'Acme', version: '1' }, []])
  assert.equal(dbBuildTime, '2026-01-02T03:04:05.000Z')
  assert.deepEqual(statements, [
    {
      ...{ vulnerability: 'CVE-2026-1', aliases: ['GHSA-1'], status: 'not_affected' },
      ...{ justification: 'vulnerable_code_not_present', text: 'It is left out.' },
      products: ['pkg:apk/alpine/zlib@1', 'pkg:npm/left'],
      within: ['pkg:oci/app@sha256:1', ''],
    },
  ])
})

test('reads the vulnerability name from the first version of OpenVEX, and a product from its identifiers', () => {
  const products = [{ '@id': 'urn:x', identifiers: { purl: 'pkg:pypi/flask@1' } }]
  const { statements } = readScanReport(openVex([{ vulnerability: 'CVE-2026-2', status: 'fixed', products }]))
  assert.deepEqual(
    statements?.map(({ vulnerability, products: of }) => [vulnerability, of]),
    [['CVE-2026-2', ['pkg:pypi/flask@1']]],
  )
})

test('reads OpenVEX in an in-toto statement like plain OpenVEX', () => {
  const predicate = JSON.parse(Buffer.from(openVex([one])).toString())
  const statement = { _type: 'https://in-toto.io/Statement/v1', predicateType: 'https://openvex.dev/ns', predicate }
  const payload = Buffer.from(JSON.stringify(statement)).toString('base64')
  const { statements } = readScanReport(packed({ payloadType: 'application/vnd.in-toto+json', payload }))
  assert.equal(statements?.length, 1)
})

test('refuses a whole document if one statement is not understood', () => {
  refused(openVex([{ ...one, status: 'ignored' }]), 'DAMAGED')
  refused(openVex([{ status: 'fixed' }]), 'DAMAGED')
  refused(openVex([{ ...one, vulnerability: { name: 'CVE 1\n' } }]), 'DAMAGED')
  refused(openVex(Array.from({ length: 5001 }, () => one)), 'LIMIT_EXCEEDED')
  refused(openVex([{ ...one, products: Array.from({ length: 101 }, () => 'pkg:npm/a') }]), 'LIMIT_EXCEEDED')
  const aliases = Array.from({ length: 50 }, (_, i) => `GHSA-aaaa-bbbb-cccc-${i}`)
  const long = { ...one, vulnerability: { name: 'CVE-2026-1', aliases } }
  refused(openVex(Array.from({ length: 4500 }, () => long)), 'LIMIT_EXCEEDED')
  assert.deepEqual(readScanReport(openVex([])).statements, [])
})

test('reads a CycloneDX analysis as a statement, in addition to the vulnerability', () => {
  const { vulnerabilities, statements } = readScanReport(
    packed({
      ...{ bomFormat: 'CycloneDX', specVersion: '1.6' },
      components: [{ 'bom-ref': 'z', purl: 'pkg:apk/alpine/zlib@1', name: 'zlib', version: '1' }],
      vulnerabilities: [
        {
          id: 'CVE-2026-1',
          analysis: { state: 'false_positive', detail: 'no' },
          affects: [{ ref: 'z' }, { ref: 'q' }],
        },
        { id: 'CVE-2026-2', analysis: { state: 'in_triage' } },
        { id: 'CVE-2026-3', affects: [{ ref: 'z' }] },
        { id: 'CVE-2026-4', analysis: { state: 'whatever' } },
      ],
    }),
  )
  assert.equal(vulnerabilities.length, 4, 'an analysis takes nothing away')
  assert.deepEqual(
    statements?.map(({ vulnerability, status, products }) => [vulnerability, status, products]),
    [
      ['CVE-2026-1', 'not_affected', ['pkg:apk/alpine/zlib@1', 'q']],
      ['CVE-2026-2', 'under_investigation', []],
    ],
  )
})

test('omits analyses above the limit, and keeps all found vulnerabilities', () => {
  const analysis = { state: 'in_triage' }
  const read = (vulnerabilities: object[], components: object[] = []) =>
    readScanReport(packed({ bomFormat: 'CycloneDX', specVersion: '1.6', components, vulnerabilities }))
  const purls = Array.from({ length: 101 }, (_, i) => `pkg:deb/debian/linux-${i}@6.1`)
  const components = purls.map((purl) => ({ 'bom-ref': purl, purl, name: purl, version: '6.1' }))
  const affects = purls.map((ref) => ({ ref }))
  const kernel = read([{ id: 'CVE-2026-1', analysis, affects }], components)
  assert.equal(kernel.vulnerabilities[0]?.packages.length, 101)
  assert.deepEqual(
    kernel.statements?.map(({ products }) => products),
    [purls.slice(0, 100), purls.slice(100)],
  )
  const references = Array.from({ length: 51 }, (_, i) => ({ id: `GHSA-${i}` }))
  const referred = read([{ id: 'CVE-2026-1', analysis, references }])
  assert.deepEqual([referred.vulnerabilities.length, referred.statements?.[0]?.aliases.length], [1, 50])
  const many = read(Array.from({ length: 5001 }, (_, i) => ({ id: `CVE-2026-${i}`, analysis })))
  assert.deepEqual([many.vulnerabilities.length, many.statements?.length], [5001, 5000])
  const resolved = Array.from({ length: 5000 }, (_, i) => ({ id: `CVE-2026-${i}`, analysis: { state: 'resolved' } }))
  const last = read([...resolved, { id: 'CVE-2026-5000', analysis }])
  assert.deepEqual(last.statements?.at(-1)?.status, 'under_investigation', 'what there is to do is not left out')
  const detail = 'x'.repeat(2000)
  const wordy = read(
    Array.from({ length: 3000 }, (_, i) => ({ id: `CVE-2026-${i}`, analysis: { ...analysis, detail } })),
  )
  assert.equal(wordy.vulnerabilities.length, 3000)
  assert.ok(wordy.statements!.length > 2000 && wordy.statements!.length < 3000)
})
