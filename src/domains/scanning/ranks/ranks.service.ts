// Exploitation data on vulnerabilities. Findings are sorted by this data. The data creates no findings and causes no comparison.
import { setImmediate } from 'node:timers/promises'
import type { App, Work } from '#app.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import type { PutCounts, Rank, SourceRun } from '../records/records.model.ts'
import * as store from './ranks.store.ts'

/** Limit on the rows of one transaction. */
const perSlice = 500

/**
 * Replaces the exploitation data of these vulnerabilities from a source. Throws INVALID_ARGUMENT for duplicates and invalid
 * values.
 */
export async function putRanks({ app }: Pick<Work, 'app'>, run: SourceRun, ranks: readonly Rank[]): Promise<PutCounts> {
  const seen = new Set<string>()
  refuseIfAny(ranks.flatMap((one, i) => problemsOf(one, `ranks[${i}]`, seen)))
  const counts: PutCounts = { created: 0, updated: 0, unchanged: 0 }
  for (let start = 0; start < ranks.length; start += perSlice) {
    const put = await app.db.tx((tx) => store.putRanks(tx, run, ranks.slice(start, start + perSlice)))
    for (const member of ['created', 'updated', 'unchanged'] as const) counts[member] += put[member]
    await setImmediate()
  }
  return counts
}

/** Deletes exploitation data that a complete run did not contain. Returns the number of deleted rows. */
export async function endRanks({ app }: Pick<Work, 'app'>, run: SourceRun): Promise<number> {
  let deleted = 0
  for (let found = 1; found > 0; deleted += found) {
    found = await app.db.tx((tx) => store.deleteOutdated(tx, run, perSlice))
    await setImmediate()
  }
  return deleted
}

/** Exploitation data of some vulnerabilities by CVE ID. */
export function ranksOf({ db }: Pick<App, 'db'>, cves: readonly string[]): Promise<Map<string, Rank>> {
  return store.ranksOf(db, [...new Set(cves)])
}

/** Number of vulnerabilities with exploitation data from each source. The keys are the numbers of the sources. */
export function countRanks({ db }: Pick<App, 'db'>): Promise<Map<number, number>> {
  return store.countRanks(db)
}

function problemsOf({ cve, exploited, likelihood }: Rank, path: string, seen: Set<string>): FieldViolation[] {
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field: `${path}.${field}`, description })
  if (!/^CVE-\d{4}-\d{4,19}$/.test(cve)) say('cve', 'must be a CVE ID, such as CVE-2024-3094')
  if (seen.has(cve)) say('cve', 'is given twice')
  seen.add(cve)
  if (!exploited && !likelihood) say('exploited', 'is required if likelihood is not set')
  for (const member of ['addDate', 'dueDate'] as const) {
    if (exploited && !/^(?:\d{4}-\d{2}-\d{2})?$/.test(exploited[member]))
      say(`exploited.${member}`, 'must be empty or a date such as 2026-08-01')
  }
  for (const member of ['epss', 'percentile'] as const) {
    if (likelihood && !(likelihood[member] >= 0 && likelihood[member] <= 1)) {
      say(`likelihood.${member}`, 'must be from 0 to 1')
    }
  }
  return problems
}
