// Statements from VEX documents in the format CSAF.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Unreadable } from '../packages.ts'
import { readScanReport } from './read-report.ts'

const image = `pkg:oci/app@sha256:${'a'.repeat(64)}`
const product = (product_id: string, helper: object = {}, name = product_id) => ({
  ...{ product_id, name, product_identification_helper: helper },
})
const tree = {
  branches: [
    {
      ...{ category: 'vendor', name: 'Acme' },
      branches: [{ category: 'product_version', name: '1', product: product('app', { purl: image }) }],
    },
  ],
  full_product_names: [
    product('zlib', { purl: 'pkg:apk/alpine/zlib@1.2.11-r0' }),
    product('musl', { purls: ['pkg:apk/alpine/musl', 'pkg:apk/wolfi/musl'] }),
    product('hashed', { hashes: [{ filename: 'app', file_hashes: [{ algorithm: 'sha256', value: 'b'.repeat(64) }] }] }),
    product('nameless', {}, 'Acme App 1.0'),
  ],
  relationships: [
    {
      ...{ category: 'default_component_of', product_reference: 'zlib', relates_to_product_reference: 'app' },
      full_product_name: product('app:zlib'),
    },
    {
      ...{ category: 'default_component_of', product_reference: 'zlib', relates_to_product_reference: 'nowhere' },
      full_product_name: product('nowhere:zlib'),
    },
  ],
  product_groups: [{ group_id: 'libraries', product_ids: ['zlib', 'musl'] }],
}
const csaf = (vulnerabilities: readonly object[], document: object = {}, product_tree: object = tree): Uint8Array =>
  Buffer.from(
    JSON.stringify({
      document: {
        ...{ category: 'csaf_vex', csaf_version: '2.0', publisher: { name: 'Acme' } },
        tracking: { version: '3', status: 'final', current_release_date: '2026-01-02T03:04:05Z' },
        ...document,
      },
      ...{ product_tree, vulnerabilities },
    }),
  )
const statementsIn = (bytes: Uint8Array) => readScanReport(bytes).statements!
const refused = (bytes: Uint8Array, reason: string) =>
  assert.throws(
    () => readScanReport(bytes),
    (error) => error instanceof Unreadable && error.reason === reason,
  )

test('merges products with the same status and reason into one statement, identified by package URLs, hashes or names', () => {
  const report = readScanReport(
    csaf([
      {
        ...{ cve: 'CVE-2026-1', ids: [{ system_name: 'Acme', text: 'ACME-1' }] },
        product_status: {
          known_not_affected: ['zlib', 'musl', 'app'],
          fixed: ['hashed'],
          known_affected: ['nameless'],
          under_investigation: ['unheard-of'],
          recommended: ['app'],
        },
        flags: [
          { label: 'vulnerable_code_not_present', group_ids: ['libraries'] },
          { label: 'component_not_present', product_ids: ['app'] },
        ],
        threats: [
          { category: 'impact', details: 'It is left out.', product_ids: ['app'] },
          { category: 'exploit_status', details: 'Widely used.' },
        ],
        remediations: [{ category: 'workaround', details: 'Turn it off.' }],
      },
    ]),
  )
  assert.deepEqual(
    [report.format, report.tool, report.dbBuildTime, report.vulnerabilities],
    ['csaf', { name: 'Acme', version: '3' }, '2026-01-02T03:04:05.000Z', []],
  )
  assert.deepEqual(
    report.statements!.map(({ status, justification, text, products }) => [status, justification, text, products]),
    [
      [
        ...['not_affected', 'vulnerable_code_not_present', 'Turn it off.'],
        ['pkg:apk/alpine/zlib@1.2.11-r0', 'pkg:apk/alpine/musl', 'pkg:apk/wolfi/musl'],
      ],
      ['not_affected', 'component_not_present', 'It is left out. Turn it off.', [image]],
      ['fixed', '', 'Turn it off.', [`@sha256:${'b'.repeat(64)}`]],
      ['affected', '', 'Turn it off.', ['Acme App 1.0']],
      ['under_investigation', '', 'Turn it off.', ['unheard-of']],
    ],
  )
  assert.deepEqual([...new Set(report.statements!.flatMap(({ aliases }) => aliases))], ['ACME-1'])
})

test('a component of a known product is a part of it; a component of an unknown product is a part of an unknown one', () => {
  const status = { known_not_affected: ['app:zlib', 'nowhere:zlib', 'zlib'] }
  const [one] = statementsIn(csaf([{ cve: 'CVE-2026-1', product_status: status }]))
  assert.deepEqual(one!.products, Array(3).fill('pkg:apk/alpine/zlib@1.2.11-r0'))
  assert.deepEqual(one!.within, [image, '?', ''])
})

test('ignores a status without products, and a vulnerability without a name', () => {
  assert.deepEqual(statementsIn(csaf([{ cve: 'CVE-2026-1', product_status: { known_not_affected: [] } }])), [])
  assert.deepEqual(statementsIn(csaf([{ cve: 'CVE-2026-1', product_status: { harmless: ['app'] } }])), [])
  assert.deepEqual(
    statementsIn(csaf([{ ids: [{ text: 'A-1' }], product_status: { fixed: ['app'] } }]))[0]!.vulnerability,
    'A-1',
  )
  refused(csaf([{ product_status: { fixed: ['app'] } }]), 'DAMAGED')
})

test('refuses a document that is not VEX, a draft, or above a limit', () => {
  refused(csaf([], { category: 'csaf_security_advisory' }), 'UNSUPPORTED')
  refused(csaf([], { tracking: { status: 'draft' } }), 'UNSUPPORTED')
  const many = Array.from({ length: 20_001 }, (_, i) => product(`p${i}`))
  refused(csaf([], {}, { full_product_names: many }), 'LIMIT_EXCEEDED')
  const groups = Array.from({ length: 1000 }, (_, i) => ({ group_id: `g${i}`, product_ids: ['app', 'zlib'] }))
  const flags = Array.from({ length: 200 }, () => ({ label: 'x', group_ids: groups.map(({ group_id }) => group_id) }))
  refused(csaf([{ cve: 'CVE-2026-1', flags }], {}, { product_groups: groups }), 'LIMIT_EXCEEDED')
  refused(csaf([], {}, { product_groups: [...groups, ...groups] }), 'LIMIT_EXCEEDED')
})

test('splits a statement with more than a hundred products, and supports deeply nested branches', () => {
  const names = Array.from({ length: 150 }, (_, i) => product(`p${i}`, { purl: `pkg:npm/p${i}` }))
  const status = { known_not_affected: names.map(({ product_id }) => product_id) }
  const statements = statementsIn(
    csaf([{ cve: 'CVE-2026-1', product_status: status }], {}, { full_product_names: names }),
  )
  assert.deepEqual(
    statements.map(({ products }) => products.length),
    [100, 50],
  )
  const depth = 5000
  const text = `${'{"branches":['.repeat(depth)}{"product":${JSON.stringify(product('deep', { purl: 'pkg:npm/deep' }))}}${']}'.repeat(depth)}`
  const deep = Buffer.from(csaf([{ cve: 'CVE-2026-1', product_status: { fixed: ['deep'] } }], {}, {}))
  const bytes = Buffer.from(deep.toString().replace('"product_tree":{}', `"product_tree":${text}`))
  assert.deepEqual(statementsIn(bytes)[0]!.products, ['pkg:npm/deep'])
})
