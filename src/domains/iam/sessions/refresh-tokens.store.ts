import { type Reader, sql, type Tx } from '#db/sql.ts'

/** What is known of the refresh tokens of a session: hashes, and what the next one is made with. */
export type RefreshFamily = {
  sessionUid: string
  familyHash: string
  currentHash: string
  /** Empty before the first rotation. */
  previousHash: string
  rotatedTime: string
  sealedKey: Uint8Array
}

export async function insertFamily(tx: Tx, family: RefreshFamily): Promise<void> {
  const { sessionUid, familyHash, currentHash, previousHash, rotatedTime, sealedKey } = family
  await tx.run(sql`
    INSERT INTO refresh_tokens (session_uid, family_hash, current_hash, previous_hash, rotated_time, sealed_key)
    VALUES (${sessionUid}, ${familyHash}, ${currentHash}, ${previousHash}, ${rotatedTime}, ${sealedKey})`)
}

export async function findFamily(reader: Reader, familyHash: string): Promise<RefreshFamily | undefined> {
  return reader.get(sql`
    SELECT session_uid AS "sessionUid", family_hash AS "familyHash", current_hash AS "currentHash",
           previous_hash AS "previousHash", rotated_time AS "rotatedTime", sealed_key AS "sealedKey"
      FROM refresh_tokens WHERE family_hash = ${familyHash}`)
}

/** `false` when the token is not the current one any more. */
export async function rotate(
  tx: Tx,
  { sessionUid, currentHash }: Pick<RefreshFamily, 'sessionUid' | 'currentHash'>,
  next: { hash: string; now: string },
): Promise<boolean> {
  const rows = await tx.run(sql`
    UPDATE refresh_tokens SET previous_hash = current_hash, current_hash = ${next.hash}, rotated_time = ${next.now}
     WHERE session_uid = ${sessionUid} AND current_hash = ${currentHash}`)
  return rows > 0
}
