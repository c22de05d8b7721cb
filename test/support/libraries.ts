// Imports libraries into a server for a test.
import assert from 'node:assert/strict'
import type { Answer, Json, Pinfold } from './pinfold.ts'

export const importPath = '/control/v1/artifacts:import'

export type Given = Record<string, (string | Json)[]>

/** Libraries with their versions, such as `{ flask: ['1.0', { version: '2.0', sizeBytes: '7' }] }`. */
export function artifactsOf(ecosystem: 'java' | 'python', given: Given): Json[] {
  return Object.entries(given).map(([name, versions]) => ({
    ecosystem: `ECOSYSTEM_${ecosystem.toUpperCase()}`,
    name,
    versions: versions.map((version) => (typeof version === 'string' ? { version } : version)),
  }))
}

export function importInto({ operator }: Pinfold, ...artifacts: Json[][]): Promise<Answer> {
  return operator.post(importPath, { artifacts: artifacts.flat() })
}

export async function seedLibraries(pinfold: Pinfold, ecosystem: 'java' | 'python', given: Given): Promise<void> {
  const answer = await importInto(pinfold, artifactsOf(ecosystem, given))
  assert.equal(answer.status, 200, answer.text)
}
