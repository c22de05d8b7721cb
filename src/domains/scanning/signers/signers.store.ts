import { holding, madeList } from '#db/made-below.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import type { Signer } from './signers.model.ts'

const columns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.name, t.public_key AS "publicKey", t.fingerprint, t.reason, t.actor,
  t.create_time AS "createTime", t.expire_time AS "expireTime", t.end_time AS "endTime", t.end_actor AS "endActor",
  t.end_reason AS "endReason"`

export async function insertSigner(tx: Tx, group: string, signer: Signer): Promise<void> {
  await tx.run(sql`
    INSERT INTO vex_signers (uid, group_uid, scope_uid, name, public_key, fingerprint, reason, actor, create_time, expire_time)
    VALUES (${signer.uid}, ${group}, ${signer.scopeUid}, ${signer.name}, ${signer.publicKey}, ${signer.fingerprint},
            ${signer.reason}, ${signer.actor}, ${signer.createTime}, ${signer.expireTime})`)
}

export async function findSigner(reader: Reader, uid: string): Promise<Signer | undefined> {
  return reader.get<Signer>(sql`SELECT ${columns} FROM vex_signers t WHERE t.uid = ${uid}`)
}

/** `false` when it had ended already. */
export async function endSigner(
  tx: Tx,
  uid: string,
  { endTime, endActor, endReason }: Pick<Signer, 'endTime' | 'endActor' | 'endReason'>,
): Promise<boolean> {
  const ended = await tx.run(sql`
    UPDATE vex_signers SET end_time = ${endTime}, end_actor = ${endActor}, end_reason = ${endReason}, last_report = -1
     WHERE uid = ${uid} AND end_time = ''`)
  return ended === 1
}

/** Those that should have ended by themselves, the first of them first. */
export async function dueSigners(reader: Reader, now: string, most: number): Promise<Signer[]> {
  return reader.all<Signer>(sql`
    SELECT ${columns} FROM vex_signers t WHERE t.end_time = '' AND t.expire_time <= ${now}
     ORDER BY t.expire_time, t.id LIMIT ${most}`)
}

export const signerList = madeList({ table: 'vex_signers', columns }, (row: Signer) => row, holding('end_time'))

/** Those that are trusted now in one of the places. */
export async function signersAt(reader: Reader, scopes: readonly string[], now: string): Promise<Signer[]> {
  return reader.all<Signer>(sql`
    SELECT ${columns} FROM vex_signers t
     WHERE t.scope_uid IN (${list(scopes)}) AND t.end_time = '' AND t.expire_time > ${now} ORDER BY t.id`)
}

/** How many hold in a place alone and in its organisation, up to `most`. */
export async function countLive(reader: Reader, scope: string, most: number): Promise<{ there: number; all: number }> {
  const root = rootOf(scope)
  const rows = await reader.all<{ scope: string }>(sql`
    SELECT t.scope_uid AS scope FROM vex_signers t
     WHERE t.uid > ${root} AND t.uid < ${`${root}0`} AND t.end_time = '' LIMIT ${most}`)
  return { there: rows.filter((row) => row.scope === scope).length, all: rows.length }
}

/** One of whom not all reports of the place were looked at, and up to which they were. */
export type NewSigner = { id: number; uid: string; scopeUid: string; lastReport: number }

/** The next behind one of them. */
export async function nextNew(reader: Reader, after: number): Promise<NewSigner | undefined> {
  const row = await reader.get<NewSigner>(sql`
    SELECT id, uid, scope_uid AS "scopeUid", last_report AS "lastReport" FROM vex_signers
     WHERE last_report >= 0 AND id > ${after} ORDER BY id LIMIT 1`)
  return row && { ...row, id: Number(row.id), lastReport: Number(row.lastReport) }
}

/** -1 once all were. */
export async function noteLooked(tx: Tx, uid: string, lastReport: number): Promise<void> {
  await tx.run(sql`UPDATE vex_signers SET last_report = ${lastReport} WHERE uid = ${uid} AND last_report >= 0`)
}
