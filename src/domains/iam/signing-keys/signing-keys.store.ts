import { type Reader, sql, type Tx } from '#db/sql.ts'

/** Key pair for signing tokens. The private key is encrypted with the master key. */
export type SigningKeyRow = {
  kid: string
  publicJwk: string
  privateJwk: Uint8Array
  /** Time from which the key signs tokens, in ISO 8601. */
  activeTime: string
  createTime: string
}

/** Signing keys, the oldest first. */
export function listSigningKeys(reader: Reader): Promise<SigningKeyRow[]> {
  return reader.all(sql`
    SELECT kid, public_jwk AS "publicJwk", private_jwk AS "privateJwk",
           active_time AS "activeTime", create_time AS "createTime"
      FROM signing_keys
     ORDER BY active_time, kid`)
}

export async function insertSigningKey(tx: Tx, key: SigningKeyRow): Promise<void> {
  await tx.run(sql`
    INSERT INTO signing_keys (kid, public_jwk, private_jwk, active_time, create_time)
    VALUES (${key.kid}, ${key.publicJwk}, ${key.privateJwk}, ${key.activeTime}, ${key.createTime})`)
}

export async function deleteSigningKey(tx: Tx, kid: string): Promise<void> {
  await tx.run(sql`DELETE FROM signing_keys WHERE kid = ${kid}`)
}
