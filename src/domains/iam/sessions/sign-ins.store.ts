// Rows about sign-ins: started sign-ins, people who are known to organizations, logout tokens, and codes for the operator's
// browser.
import { deleteOldest } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'

/** Sign-in that was started. The person is at the provider and will be redirected back. */
export type Attempt = {
  stateHash: string
  /** Hash of the cookie secret of the browser that started the sign-in. */
  browserHash: string
  provider: string
  /** Callback URL to which the provider redirects the browser. */
  callback: string
  /** Encrypted nonce, PKCE verifier and invite code. */
  sealed: Uint8Array
  /** JSON of the action after the sign-in. */
  asked: string
  expireTime: string
}

export async function insertAttempt(tx: Tx, attempt: Attempt): Promise<void> {
  const { stateHash, browserHash, provider, callback, sealed, asked, expireTime } = attempt
  await tx.run(sql`
    INSERT INTO sign_in_attempts (state_hash, browser_hash, provider, callback, sealed, asked, expire_time)
    VALUES (${stateHash}, ${browserHash}, ${provider}, ${callback}, ${sealed}, ${asked}, ${expireTime})`)
}

/** Deletes and returns a started sign-in, so that it can be finished only once. Undefined if another browser started it. */
export async function takeAttempt(tx: Tx, stateHash: string, browserHash: string): Promise<Attempt | undefined> {
  return tx.get(sql`
    DELETE FROM sign_in_attempts WHERE state_hash = ${stateHash} AND browser_hash = ${browserHash}
    RETURNING state_hash AS "stateHash", browser_hash AS "browserHash", provider, callback, sealed, asked,
              expire_time AS "expireTime"`)
}

/** Records that the person has signed in with a provider of the organization. Returns true at the first time. */
export async function notePerson(tx: Tx, organization: string, identity: string, now: string): Promise<boolean> {
  const rows = await tx.run(sql`
    INSERT INTO organization_people (organization, identity_uid, create_time) VALUES (${organization}, ${identity}, ${now})
        ON CONFLICT (organization, identity_uid) DO NOTHING`)
  return rows > 0
}

/** True if the person has signed in with a provider of another organization. */
export async function hasSignedInElsewhere(reader: Reader, identity: string, organization: string): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT organization FROM organization_people WHERE identity_uid = ${identity} AND organization <> ${organization} LIMIT 1`)
  return row !== undefined
}

/** Deletes the records of a person, so that the person is new to all organizations. */
export async function forgetPerson(tx: Tx, identity: string): Promise<void> {
  await tx.run(sql`DELETE FROM organization_people WHERE identity_uid = ${identity}`)
}

/** Records that a logout token was used. Returns false if the token was used before. */
export async function noteLogout(tx: Tx, provider: string, jtiHash: string, expireTime: string): Promise<boolean> {
  const rows = await tx.run(sql`
    INSERT INTO logout_tokens (provider, jti_hash, expire_time) VALUES (${provider}, ${jtiHash}, ${expireTime})
        ON CONFLICT (provider, jti_hash) DO NOTHING`)
  return rows > 0
}

export async function insertConsoleCode(tx: Tx, codeHash: string, expireTime: string): Promise<void> {
  await tx.run(sql`INSERT INTO console_codes (code_hash, expire_time) VALUES (${codeHash}, ${expireTime})`)
}

/** Deletes a code of the operator's browser. Returns false if the code is unknown or has expired. */
export async function takeConsoleCode(tx: Tx, codeHash: string, now: string): Promise<boolean> {
  const taken = await tx.get<{ expireTime: string }>(sql`
    DELETE FROM console_codes WHERE code_hash = ${codeHash} RETURNING expire_time AS "expireTime"`)
  return taken !== undefined && taken.expireTime > now
}

/** Deletes up to `limit` expired rows of each kind. Also deletes the oldest rows if there are more than `most`. */
export async function sweepSignIns(tx: Tx, now: string, limit: number, most: number): Promise<number> {
  const codes = await tx.run(sql`DELETE FROM console_codes WHERE expire_time <= ${now}`)
  const logouts = await tx.run(sql`
    DELETE FROM logout_tokens WHERE (provider, jti_hash) IN (
      SELECT provider, jti_hash FROM logout_tokens WHERE expire_time <= ${now} ORDER BY expire_time LIMIT ${limit})`)
  const attempts = await deleteOldest(tx, { table: 'sign_in_attempts', key: 'state_hash' }, now, limit)
  const above = await tx.run(sql`
    DELETE FROM sign_in_attempts WHERE state_hash IN (
      SELECT state_hash FROM sign_in_attempts ORDER BY expire_time DESC LIMIT ${limit} OFFSET ${most})`)
  return codes + logouts + attempts + above
}
