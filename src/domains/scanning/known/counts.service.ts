// How many vulnerabilities a list has now, of each severity: each once, under its CVE, at its worst.
import { setImmediate } from 'node:timers/promises'
import type { Reader } from '#db/sql.ts'
import { findingStates } from '../matching/findings.model.ts'
import { unknownSeverity, worse } from '../matching/severity.model.ts'
import { severityLevels } from '../records/records.model.ts'
import { vulnerabilityIds } from './known.model.ts'
import * as store from './known.store.ts'

export type { Counts } from './known.store.ts'

const atOnce = 500

type Tally = { levels: Map<string, number>; gaps: Set<string> }

/** `open`: how much is found that counts for everybody, suppressed or not, up to one more than `most`. */
export type Counted = { counts: Map<string, store.Counts>; open: number }

/**
 * For everybody, and for each organisation that knows more of it than that. Others have their turn meanwhile. Of a list in
 * which more than `most` is found only so much is counted.
 */
export async function countsOf(reader: Reader, listNo: number, most: number): Promise<Counted> {
  let open = 0
  const tallies = new Map<string, Tally>([['', emptyTally()]])
  for (let after: store.LightFinding | undefined; ; ) {
    const found = await store.findLight(reader, listNo, { after, most: atOnce })
    for (const one of found) {
      if (one.place === '') open++
      if (open > most) break
      if (Number(one.suppressed) === 1) continue
      const tally = tallies.get(one.place) ?? emptyTally()
      tallies.set(one.place, tally)
      addTo(tally, one)
    }
    after = found.at(-1)
    if (!after || found.length < atOnce || open > most) break
    await setImmediate()
  }
  const everybody = tallies.get('')!
  const counts = [...tallies]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([place, tally]) => [place, countsIn(place === '' ? tally : both(everybody, tally))] as const)
  return { counts: new Map(counts), open }
}

const emptyTally = (): Tally => ({ levels: new Map(), gaps: new Set() })

function addTo({ levels, gaps }: Tally, one: store.LightFinding): void {
  const record = { id: one.recordId, aliases: parsed(one.aliases), upstream: parsed(one.upstream) }
  for (const id of vulnerabilityIds(record)) {
    if (Number(one.state) === findingStates.unknown) gaps.add(id)
    else levels.set(id, worse(Number(one.severity), levels.get(id) ?? Number(one.severity)))
  }
}

function both(one: Tally, other: Tally): Tally {
  const levels = new Map(one.levels)
  for (const [id, level] of other.levels) levels.set(id, worse(level, levels.get(id) ?? level))
  return { levels, gaps: one.gaps.union(other.gaps) }
}

function countsIn({ levels, gaps }: Tally): store.Counts {
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
