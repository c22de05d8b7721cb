// What was said of a place ends with the place.
import { madeBelow } from '#db/made-below.ts'
import { ident, sql, type Tx } from '#db/sql.ts'

/** Deletes the rules that were made there; answers with how many there were. */
export async function deleteRulesAt(
  tx: Tx,
  table: 'pull_rules' | 'gates' | 'retention_rules' | 'tag_rules',
  place: string,
): Promise<number> {
  return tx.run(sql`DELETE FROM ${ident(table)} AS t WHERE ${madeBelow(place)}`)
}

/** Ends the exceptions that were made there and have not been ended. */
export async function endExceptionsAt(
  tx: Tx,
  table: 'pull_rule_exceptions' | 'gate_exceptions',
  place: string,
  by: { time: string; actor: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE ${ident(table)} AS t SET revoke_time = ${by.time}, revoked_by = ${by.actor}
     WHERE ${madeBelow(place)} AND t.revoke_time = ''`)
}
