// Vulnerability data, advisories and libraries of the demo.
import type { DemoClient } from './client.ts'
import { demoRanks, demoRecords, demoSource } from './findings.ts'

/** Imports the records of the data source. */
export async function addSource(operator: DemoClient): Promise<void> {
  const { run } = await operator.post('/control/v1/vulnerabilitySources:begin', { source: demoSource })
  await operator.post('/control/v1/vulnerabilitySources:put', { run, records: demoRecords })
  await operator.post('/control/v1/vulnerabilitySources:putRanks', { run, ranks: demoRanks })
  await operator.post('/control/v1/vulnerabilitySources:finish', { run, complete: true })
}

const day = 86_400_000
const daysAgo = (days: number): string => new Date(Date.now() - days * day).toISOString()

/** Imports advisories of the company about its packages, and a few libraries. */
export async function addKnowledge(operator: DemoClient, organization: string): Promise<void> {
  const approved = { author: 'security@acme.example', reviewState: 'REVIEW_STATE_APPROVED' }
  const pending = { author: 'build@acme.example', reviewState: 'REVIEW_STATE_PENDING' }
  const found = {
    truePositiveDetermination: { note: 'The proxy reads XML of partners with this library. (demo record)' },
  }
  const unused = {
    falsePositiveDetermination: {
      type: 'TYPE_VULNERABLE_CODE_NOT_IN_EXECUTION_PATH',
      note: 'No image starts the SSH server. (demo record)',
    },
  }
  await operator.post('/control/v1/advisories:import', {
    parent: organization,
    advisories: [
      advisory('CGA-2222-2222-2222', 'expat', 'CVE-2024-45490', [
        { createTime: daysAgo(40), ...approved, ...found },
        { createTime: daysAgo(24), ...approved, fixed: { fixedVersion: '2.6.3-r0' } },
      ]),
      advisory('CGA-3333-3333-3333', 'xz', 'CVE-2024-3094', [{ createTime: daysAgo(85), ...approved, ...unused }]),
      advisory('CGA-4444-4444-4444', 'openssl', 'CVE-2024-6119', [{ createTime: daysAgo(2), ...pending, ...found }]),
    ],
  })
  const artifacts = libraries.map(([name, version, releaseTime, sizeBytes]) => ({
    ecosystem: 'ECOSYSTEM_PYTHON',
    name,
    versions: [{ version, releaseTime, sizeBytes }],
  }))
  await operator.post('/control/v1/artifacts:import', { artifacts })
}

function advisory(advisoryId: string, origin: string, alias: string, events: readonly object[]) {
  const artifact = { artifactName: origin, artifactType: 'apk', componentName: origin, author: 'security@acme.example' }
  return { origin, advisory: { advisoryId, ...artifact, aliases: [alias], events } }
}

/** Versions of Python libraries with their real times and sizes (see NOTICE). */
const libraries: readonly (readonly [name: string, version: string, time: string, bytes: string])[] = [
  ['flask', '3.0.3', '2024-04-07T19:26:08.569Z', '101735'],
  ['jinja2', '3.1.4', '2024-05-05T23:41:59.928Z', '133271'],
  ['requests', '2.32.3', '2024-05-29T15:37:47.027Z', '64928'],
]
