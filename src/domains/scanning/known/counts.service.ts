// How many vulnerabilities a list has now, of each severity: each once, under its CVE, at its worst.
import type { Reader, Tx } from '#db/sql.ts'
import { findingStates } from '../matching/findings.model.ts'
import { unknownSeverity, worse } from '../matching/severity.model.ts'
import { severityLevels } from '../records/records.model.ts'
import { vulnerabilityIds } from './known.model.ts'
import * as store from './known.store.ts'

export type { Counts } from './known.store.ts'

/** Brings the counts of a list to what its findings are now. */
export async function countList(tx: Tx, listNo: number, now: string): Promise<void> {
  await store.saveCounts(tx, listNo, await countsOf(tx, listNo), now)
}

/** For everybody, and for each organisation that knows more of it than that. */
export async function countsOf(reader: Reader, listNo: number): Promise<Map<string, store.Counts>> {
  const found = await store.findLight(reader, listNo)
  const places = new Set(['', ...found.map(({ place }) => place)])
  return new Map(
    [...places]
      .sort()
      .map((place) => [place, countsAmong(found.filter((one) => one.place === '' || one.place === place))]),
  )
}

function countsAmong(found: readonly store.LightFinding[]): store.Counts {
  const levels = new Map<string, number>()
  const gaps = new Set<string>()
  for (const one of found) {
    const record = { id: one.recordId, aliases: parsed(one.aliases), upstream: parsed(one.upstream) }
    for (const id of vulnerabilityIds(record)) {
      if (Number(one.state) === findingStates.unknown) gaps.add(id)
      else levels.set(id, worse(Number(one.severity), levels.get(id) ?? Number(one.severity)))
    }
  }
  const count = (level: number) => [...levels.values()].filter((one) => one === level).length
  const { critical, high, medium, low, negligible } = severityLevels
  return {
    critical: count(critical),
    high: count(high),
    medium: count(medium),
    low: count(low),
    negligible: count(negligible),
    unknown: count(unknownSeverity),
    gaps: [...gaps].filter((id) => !levels.has(id)).length,
  }
}

const parsed = (text: string): string[] => JSON.parse(text) as string[]
