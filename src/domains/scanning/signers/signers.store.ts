import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { endingTable } from '#domains/rules/rules.store.ts'
import { rootOf } from '#lib/uid.ts'
import type { Signer } from './signers.model.ts'

export const signerTable = endingTable<Signer>({
  table: 'vex_signers',
  members: ['name', 'publicKey', 'fingerprint', 'expireTime'],
})

/** Signers that are trusted now in one of the scopes. */
export async function signersAt(reader: Reader, scopes: readonly string[], now: string): Promise<Signer[]> {
  return reader.all<Signer>(sql`
    SELECT ${signerTable.columns} FROM vex_signers t
     WHERE t.scope_uid IN (${list(scopes)}) AND t.end_time = '' AND t.expire_time > ${now} ORDER BY t.id`)
}

/** Numbers of signers that are trusted now in a scope and in its organization, at most `most`. */
export async function countLive(reader: Reader, scope: string, most: number): Promise<{ there: number; all: number }> {
  const root = rootOf(scope)
  const rows = await reader.all<{ scope: string }>(sql`
    SELECT t.scope_uid AS scope FROM vex_signers t
     WHERE t.uid > ${root} AND t.uid < ${`${root}0`} AND t.end_time = '' LIMIT ${most}`)
  return { there: rows.filter((row) => row.scope === scope).length, all: rows.length }
}

/** A signer for whom some documents of the scope were not queued yet. `lastReport` is the last document that was queued. */
export type NewSigner = { id: number; uid: string; scopeUid: string; lastReport: number }

/** The first new signer after the signer `after`. */
export async function nextNew(reader: Reader, after: number): Promise<NewSigner | undefined> {
  return reader.get<NewSigner>(sql`
    SELECT id, uid, scope_uid AS "scopeUid", last_report AS "lastReport" FROM vex_signers
     WHERE last_report >= 0 AND id > ${after} ORDER BY id LIMIT 1`)
}

/** Stores the last document that was queued for a new signer. `lastReport` is -1 once all documents were queued. */
export async function noteQueuedReport(tx: Tx, uid: string, lastReport: number): Promise<void> {
  await tx.run(sql`UPDATE vex_signers SET last_report = ${lastReport} WHERE uid = ${uid} AND last_report >= 0`)
}
