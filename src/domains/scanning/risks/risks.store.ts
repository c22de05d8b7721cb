import { holding, madeList } from '#db/made-below.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { rootOf } from '#lib/uid.ts'
import type { RiskAcceptance } from './risks.model.ts'

const columns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.digest, t.package, t.vulnerability, t.reason, t.actor,
  t.create_time AS "createTime", t.expire_time AS "expireTime", t.end_time AS "endTime", t.end_actor AS "endActor",
  t.end_reason AS "endReason", t.statement, t.stated`

export async function insertRisk(tx: Tx, group: string, risk: RiskAcceptance): Promise<void> {
  await tx.run(sql`
    INSERT INTO risk_acceptances (uid, group_uid, scope_uid, digest, package, vulnerability, reason, actor, create_time,
                                  expire_time, statement, stated)
    VALUES (${risk.uid}, ${group}, ${risk.scopeUid}, ${risk.digest}, ${risk.package}, ${risk.vulnerability},
            ${risk.reason}, ${risk.actor}, ${risk.createTime}, ${risk.expireTime}, ${risk.statement}, ${risk.stated})`)
}

export async function findRisk(reader: Reader, uid: string): Promise<RiskAcceptance | undefined> {
  return reader.get<RiskAcceptance>(sql`SELECT ${columns} FROM risk_acceptances t WHERE t.uid = ${uid}`)
}

/** `false` when it had ended already. */
export async function endRisk(
  tx: Tx,
  uid: string,
  { endTime, endActor, endReason }: Pick<RiskAcceptance, 'endTime' | 'endActor' | 'endReason'>,
): Promise<boolean> {
  const ended = await tx.run(sql`
    UPDATE risk_acceptances SET end_time = ${endTime}, end_actor = ${endActor}, end_reason = ${endReason}
     WHERE uid = ${uid} AND end_time = ''`)
  return ended === 1
}

/** Those that should have ended by themselves, the first of them first. */
export async function dueRisks(reader: Reader, now: string, most: number): Promise<RiskAcceptance[]> {
  return reader.all<RiskAcceptance>(sql`
    SELECT ${columns} FROM risk_acceptances t WHERE t.end_time = '' AND t.expire_time <= ${now}
     ORDER BY t.expire_time, t.id LIMIT ${most}`)
}

export const riskList = madeList(
  { table: 'risk_acceptances', columns },
  (row: RiskAcceptance) => row,
  holding('end_time'),
)

/** How many hold in an organisation, up to `most`. */
export async function countLive(reader: Reader, place: string, most: number): Promise<number> {
  const root = rootOf(place)
  const rows = await reader.all(sql`
    SELECT 1 AS found FROM risk_acceptances t
     WHERE t.uid > ${root} AND t.uid < ${`${root}0`} AND t.end_time = '' LIMIT ${most}`)
  return rows.length
}

/** How many there are and were of a vulnerability in a place, up to `most`. */
export async function countOf(reader: Reader, scope: string, vulnerability: string, most: number): Promise<number> {
  const rows = await reader.all(sql`
    SELECT 1 AS found FROM risk_acceptances t
     WHERE t.scope_uid = ${scope} AND t.vulnerability = ${vulnerability} LIMIT ${most}`)
  return rows.length
}

/** Whether there is or was any in one of the places. */
export async function hasRisks(reader: Reader, scopes: readonly string[]): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM risk_acceptances t WHERE t.scope_uid IN (${list(scopes)}) LIMIT 1`)
  return row !== undefined
}

/** Those of some vulnerabilities in some places, the ended too. */
export async function risksOf(
  reader: Reader,
  scopes: readonly string[],
  vulnerabilities: readonly string[],
): Promise<RiskAcceptance[]> {
  const found: RiskAcceptance[] = []
  for (const some of chunks(vulnerabilities, 400)) {
    found.push(
      ...(await reader.all<RiskAcceptance>(sql`
        SELECT ${columns} FROM risk_acceptances t
         WHERE t.scope_uid IN (${list(scopes)}) AND t.vulnerability IN (${list(some)})`)),
    )
  }
  return found
}
