import { allOf, exists } from '#db/bulk.ts'
import { list, type Reader, sql } from '#db/sql.ts'
import { endingTable } from '#domains/rules/rules.store.ts'
import { rootOf } from '#lib/uid.ts'
import type { RiskAcceptance } from './risks.model.ts'

export const riskTable = endingTable<RiskAcceptance>({
  table: 'risk_acceptances',
  members: ['digest', 'package', 'vulnerability', 'expireTime', 'statement', 'stated'],
})

/** Number of acceptances in force in an organization, at most `most`. */
export async function countLive(reader: Reader, scope: string, most: number): Promise<number> {
  const root = rootOf(scope)
  const rows = await reader.all(sql`
    SELECT 1 AS found FROM risk_acceptances t
     WHERE t.uid > ${root} AND t.uid < ${`${root}0`} AND t.end_time = '' LIMIT ${most}`)
  return rows.length
}

/** Number of present and former acceptances of a vulnerability at a scope, at most `most`. */
export async function countOf(reader: Reader, scope: string, vulnerability: string, most: number): Promise<number> {
  const rows = await reader.all(sql`
    SELECT 1 AS found FROM risk_acceptances t
     WHERE t.scope_uid = ${scope} AND t.vulnerability = ${vulnerability} LIMIT ${most}`)
  return rows.length
}

/** True if there is or was an acceptance at one of the scopes. */
export async function hasRisks(reader: Reader, scopes: readonly string[]): Promise<boolean> {
  return exists(reader, sql`FROM risk_acceptances t WHERE t.scope_uid IN (${list(scopes)})`)
}

/** Present and former acceptances of some vulnerabilities at some scopes. */
export async function risksOf(
  reader: Reader,
  scopes: readonly string[],
  vulnerabilities: readonly string[],
): Promise<RiskAcceptance[]> {
  const named = (some: readonly string[]) => sql`
    SELECT ${riskTable.columns} FROM risk_acceptances t
     WHERE t.scope_uid IN (${list(scopes)}) AND t.vulnerability IN (${list(some)})`
  return allOf(reader, vulnerabilities, named)
}
