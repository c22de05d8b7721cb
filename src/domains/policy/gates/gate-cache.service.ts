// Admission gates of organizations and their recent verdicts in memory.
import { createRuleCache, type RuleSource } from '#domains/rules/rule-cache.service.ts'
import { createAged } from '#lib/caches/brief-cache.ts'
import { type GateCache, mostGates, type Verdict } from './gates.model.ts'
import { gateExceptionTable, gateTable } from './gates.store.ts'

/** Maximum age and number of verdicts: a new finding in an image counts after that time. */
const verdicts = { ageMs: 5000, entries: 10_000 }

export function createGateCache(source: RuleSource): GateCache {
  const tables = { rules: gateTable, exceptions: gateExceptionTable }
  return {
    ...createRuleCache(source, tables, { most: mostGates, isOn: ({ mode }) => mode !== 'OFF' }),
    verdict: createAged<Verdict>(source.monotonic, verdicts).of,
  }
}
