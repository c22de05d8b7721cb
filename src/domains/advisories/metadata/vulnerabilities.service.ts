import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { type FieldViolation, invalid, refuseIfAny } from '#lib/errors.ts'
import { violationsOf } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Listed, toListed } from '#lib/lists/paging.ts'
import {
  maxListed,
  referenceFields,
  type Severity,
  severityFields,
  type Vulnerability,
  vulnerabilityFields,
} from './vulnerabilities.model.ts'
import * as store from './vulnerabilities.store.ts'

export type { Severity } from './vulnerabilities.model.ts'
export type ImportCounts = { created: number; updated: number; unchanged: number }

const maxImported = 500
const maxIds = 1000

/** Lists vulnerabilities with one of the IDs as their ID or alias. Lists all if there are no IDs. */
export async function listVulnerabilities(
  call: Call,
  { page, filter }: ListQuery<{ ids: readonly string[] }>,
): Promise<Listed<Vulnerability>> {
  const names = [...new Set(filter.ids)]
  if (names.length > maxIds) throw invalid({ field: 'ids', description: `must have at most ${maxIds} different IDs` })
  const { db } = call.app
  const [rows, total] = await Promise.all([
    store.listVulnerabilities(db, page, names),
    store.countVulnerabilities(db, names),
  ])
  const keyed = rows.map((row) => ({ ...row, uid: row.id }))
  return toListed(call, page, keyed, total)
}

const atOnce = 1000

/** Severities of vulnerabilities by name, without duplicates. Names of unknown vulnerabilities are missing. */
export async function severitiesOf(reader: Reader, names: Iterable<string>): Promise<Map<string, Severity[]>> {
  const found = new Map<string, Severity[]>()
  const all = [...new Set(names)]
  for (let i = 0; i < all.length; i += atOnce) {
    for (const { name, severities } of await store.severitiesOf(reader, all.slice(i, i + atOnce))) {
      found.set(name, distinct([...(found.get(name) ?? []), ...severities]))
    }
  }
  return found
}

/** Severities without duplicates, ordered by scoring system. */
export function distinct(severities: readonly Severity[]): Severity[] {
  const byText = new Map(severities.map((one) => [`${one.type} ${one.score}`, one]))
  return [...byText.values()].sort((a, b) => a.type - b.type || (a.score < b.score ? -1 : 1))
}

/** Imports all vulnerabilities or none, in one transaction. A stored vulnerability is replaced if its content differs. */
export async function importVulnerabilities(call: Call, imported: readonly Vulnerability[]): Promise<ImportCounts> {
  checkImport(imported)
  const counts = await call.app.db.tx(async (tx) => {
    const ids = imported.map(({ id }) => id)
    const known = await store.findVulnerabilities(tx, ids)
    const saved = imported.filter((one) => {
      const before = known.get(one.id)
      return !before || textOf(before) !== textOf(one)
    })
    if (saved.length > 0) await store.saveVulnerabilities(tx, saved, known, call.now)
    const updated = saved.filter(({ id }) => known.has(id)).length
    return { created: saved.length - updated, updated, unchanged: imported.length - saved.length }
  })
  call.log.info('vulnerabilities imported', counts)
  return counts
}

/** Text for comparing two vulnerabilities, which does not depend on the order of the fields. */
function textOf({
  id,
  aliases,
  summary,
  details,
  references,
  severities,
  publishTime,
  modifyTime,
}: Vulnerability): string {
  return JSON.stringify([
    id,
    aliases,
    summary,
    details,
    references.map(({ type, url }) => [type, url]),
    severities.map(({ type, score }) => [type, score]),
    publishTime,
    modifyTime,
  ])
}

function checkImport(imported: readonly Vulnerability[]): void {
  if (imported.length === 0) throw invalid({ field: 'vulnerabilities', description: 'is required' })
  if (imported.length > maxImported) {
    throw invalid({ field: 'vulnerabilities', description: `must have at most ${maxImported} vulnerabilities` })
  }
  const seen = new Set<string>()
  refuseIfAny(
    imported.flatMap((one, i): FieldViolation[] => {
      const problems = problemsOf(one)
      if (seen.has(one.id)) problems.push({ field: 'id', description: 'is given twice' })
      seen.add(one.id)
      return problems.map(({ field, description }) => ({ field: `vulnerabilities[${i}].${field}`, description }))
    }),
  )
}

function problemsOf(one: Vulnerability): FieldViolation[] {
  const problems = violationsOf<Vulnerability>(vulnerabilityFields, one)
  for (const member of ['aliases', 'references', 'severities'] as const) {
    if (one[member].length > maxListed) {
      problems.push({ field: member, description: `must have at most ${maxListed} entries` })
    }
  }
  const below = (member: string, i: number, found: FieldViolation[]) =>
    found.map(({ field, description }) => ({ field: `${member}[${i}].${field}`, description }))
  for (const [i, reference] of one.references.entries()) {
    problems.push(...below('references', i, violationsOf(referenceFields, reference)))
  }
  for (const [i, severity] of one.severities.entries()) {
    problems.push(...below('severities', i, violationsOf(severityFields, severity)))
  }
  return problems
}
