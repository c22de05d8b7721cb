// Requirements for the vulnerability documents that the server writes, from their specifications.
import assert from 'node:assert/strict'
import type { Json } from './pinfold.ts'

/** Asserts that all members are known, and that the required ones exist. */
function members(value: Json, required: readonly string[], optional: readonly string[] = []): void {
  for (const name of required) assert.ok(value[name] !== undefined, `${name} is missing in ${JSON.stringify(value)}`)
  const known = [...required, ...optional]
  for (const name of Object.keys(value)) assert.ok(known.includes(name), `${name} is no member of the format`)
}
const oneOf = (value: unknown, ...words: unknown[]) => assert.ok(words.includes(value), `${value} is none of ${words}`)
const isTime = (value: unknown) => assert.ok(!Number.isNaN(Date.parse(String(value))) && String(value).endsWith('Z'))
const isUri = (value: unknown) => assert.match(String(value), /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]+$/i)
const areUnique = (values: readonly unknown[]) =>
  assert.equal(new Set(values.map((one) => JSON.stringify(one))).size, values.length)

/** CycloneDX 1.6: https://cyclonedx.org/docs/1.6/json. Every reference leads somewhere, and no two things have the same. */
export function checkCycloneDx(document: Json): void {
  members(
    document,
    ['bomFormat', 'specVersion'],
    ['serialNumber', 'version', 'metadata', 'components', 'compositions', 'vulnerabilities'],
  )
  assert.deepEqual([document.bomFormat, document.specVersion], ['CycloneDX', '1.6'])
  assert.match(document.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  members(document.metadata, ['timestamp', 'tools', 'component'], ['properties'])
  isTime(document.metadata.timestamp)
  const all = [document.metadata.component, ...document.components]
  for (const one of [...all, ...document.metadata.tools.components]) {
    members(one, ['type', 'name'], ['bom-ref', 'version', 'purl', 'hashes'])
    oneOf(one.type, 'application', 'container', 'library')
  }
  const refs = new Set(all.map((one) => one['bom-ref']))
  const found = document.vulnerabilities.map((one: Json) => one['bom-ref'])
  areUnique([...all.map((one) => one['bom-ref']), ...found])
  for (const { aggregate, assemblies = [], vulnerabilities = [] } of document.compositions) {
    oneOf(aggregate, 'complete', 'incomplete', 'unknown')
    for (const ref of assemblies) assert.ok(refs.has(ref))
    for (const ref of vulnerabilities) assert.ok(found.includes(ref))
  }
  const optional = [
    'bom-ref',
    'references',
    'ratings',
    'description',
    'recommendation',
    'analysis',
    'advisories',
    'properties',
  ]
  for (const one of document.vulnerabilities) {
    members(one, ['id', 'affects'], optional)
    for (const { ref } of one.affects) assert.ok(refs.has(ref), `${ref} leads nowhere`)
    for (const { severity = 'none' } of one.ratings) {
      oneOf(severity, 'critical', 'high', 'medium', 'low', 'info', 'none', 'unknown')
    }
    if (!one.analysis) continue
    members(one.analysis, ['state'], ['justification', 'response', 'detail'])
    oneOf(one.analysis.state, 'resolved', 'exploitable', 'in_triage', 'false_positive', 'not_affected')
  }
}

/** OpenVEX 0.2.0: https://github.com/openvex/spec. */
export function checkOpenVex(document: Json): void {
  members(
    document,
    ['@context', '@id', 'author', 'timestamp', 'version', 'statements'],
    ['role', 'last_updated', 'tooling'],
  )
  assert.equal(document['@context'], 'https://openvex.dev/ns/v0.2.0')
  isUri(document['@id'])
  isTime(document.timestamp)
  assert.ok(document.version >= 1 && document.statements.length >= 1)
  areUnique(document.statements)
  const optional = ['timestamp', 'products', 'status_notes', 'justification', 'impact_statement', 'action_statement']
  for (const one of document.statements) {
    members(one, ['vulnerability', 'status'], optional)
    members(one.vulnerability, ['name'], ['@id', 'description', 'aliases'])
    oneOf(one.status, 'not_affected', 'affected', 'fixed', 'under_investigation')
    isTime(one.timestamp)
    for (const product of one.products) {
      members(product, [], ['@id', 'identifiers', 'hashes', 'subcomponents'])
      areUnique(product.subcomponents)
      for (const component of [product, ...product.subcomponents]) {
        isUri(component['@id'])
        members(component.identifiers, [], ['purl'])
      }
    }
    if (one.status === 'not_affected')
      assert.notEqual(one.justification === undefined, one.impact_statement === undefined)
    if (one.status === 'affected') assert.ok(one.action_statement)
  }
}

/** SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0. */
export function checkSarif(document: Json): void {
  members(document, ['version', 'runs'], ['$schema'])
  assert.equal(document.version, '2.1.0')
  for (const run of document.runs) {
    members(run, ['tool', 'results'], ['invocations', 'properties'])
    const { rules } = run.tool.driver
    areUnique(rules.map(({ id }: Json) => id))
    for (const { executionSuccessful, toolExecutionNotifications } of run.invocations) {
      assert.equal(typeof executionSuccessful, 'boolean')
      for (const { message, level } of toolExecutionNotifications) {
        assert.ok(message.text)
        oneOf(level, 'none', 'note', 'warning', 'error')
      }
    }
    const optional = ['ruleIndex', 'level', 'kind', 'locations', 'partialFingerprints', 'suppressions']
    for (const result of run.results) {
      members(result, ['ruleId', 'message'], optional)
      assert.equal(rules[result.ruleIndex].id, result.ruleId)
      oneOf(result.level, 'none', 'note', 'warning', 'error')
      // A result of the kind review must have the level none.
      assert.equal(result.level === 'none', result.kind === 'review')
      for (const { kind, status } of result.suppressions ?? []) {
        oneOf(kind, 'inSource', 'external')
        oneOf(status, 'accepted', 'underReview', 'rejected')
      }
    }
  }
}
