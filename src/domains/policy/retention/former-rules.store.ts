// What rules of retention have said before.
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { FormerRule } from './retention.model.ts'

type Stored = FormerRule & { id: number }

/** Of the rules at a place and below, in the order in which they ended. */
export async function formerRules(reader: Reader, place: string): Promise<Stored[]> {
  const rows = await reader.all<Omit<Stored, 'says'> & { says: string }>(sql`
    SELECT id, rule AS uid, scope_uid AS "scopeUid", says, end_time AS "endTime" FROM former_rules
     WHERE rule > ${place} AND rule < ${`${place}0`} ORDER BY id`)
  return rows.map((row) => ({ ...row, says: JSON.parse(row.says) as FormerRule['says'] }))
}

export async function insertFormerRule(tx: Tx, group: string, rule: FormerRule): Promise<void> {
  const { uid, scopeUid, says, endTime } = rule
  await tx.run(sql`
    INSERT INTO former_rules (group_uid, rule, scope_uid, says, end_time)
    VALUES (${group}, ${uid}, ${scopeUid}, ${JSON.stringify(says)}, ${endTime})`)
}

export async function deleteFormerRule(tx: Tx, id: number): Promise<void> {
  await tx.run(sql`DELETE FROM former_rules WHERE id = ${id}`)
}

/** Of the rules at a place and below; answers with how many there were. */
export async function deleteFormerRulesAt(tx: Tx, place: string): Promise<number> {
  return tx.run(sql`DELETE FROM former_rules WHERE rule > ${place} AND rule < ${`${place}0`}`)
}
