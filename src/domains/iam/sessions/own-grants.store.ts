// Rows about programs for which a user signs in: device codes, authorization codes for a loopback redirect, headless sign-ins,
// and refresh tokens.
import { countRows, deleteOldest } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'

export type DeviceAnswer = '' | 'approved' | 'refused'

/** Device code of a program. The program waits until a user has entered its user code. */
export type DeviceCode = {
  deviceHash: string
  userHash: string
  clientId: string
  /** JSON of the token request. */
  asked: string
  /** Network of `source`, in which device codes are limited. `source` is the IP address. */
  network: string
  source: string
  userAgent: string
  answer: DeviceAnswer
  /** Session of the person who answered. Empty before the answer. */
  sessionUid: string
  pollSeconds: number
  polledTime: string
  createTime: string
  expireTime: string
}

export async function insertDeviceCode(tx: Tx, one: DeviceCode): Promise<void> {
  await tx.run(sql`
    INSERT INTO device_codes (device_hash, user_hash, client_id, asked, network, source, user_agent, answer, session_uid,
                              poll_seconds, polled_time, create_time, expire_time)
    VALUES (${one.deviceHash}, ${one.userHash}, ${one.clientId}, ${one.asked}, ${one.network}, ${one.source},
            ${one.userAgent}, ${one.answer}, ${one.sessionUid}, ${one.pollSeconds}, ${one.polledTime}, ${one.createTime},
            ${one.expireTime})`)
}

/** Number of device codes that wait for an answer: from the network, from its IPv6 /48, and in total. */
export async function countDeviceCodes(
  reader: Reader,
  network: string,
  now: string,
): Promise<{ ofNetwork: number; ofSite: number; all: number }> {
  const own = await countRows(reader, sql`FROM device_codes WHERE network = ${network} AND expire_time > ${now}`)
  const all = await countRows(reader, sql`FROM device_codes WHERE expire_time > ${now}`)
  const site = network.endsWith('::/64') ? `${network.split(':').slice(0, 3).join(':')}:%` : ''
  const around = await countRows(reader, sql`FROM device_codes WHERE network LIKE ${site} AND expire_time > ${now}`)
  return { ofNetwork: own, ofSite: around, all }
}

/** Deletes the oldest device code that was never polled. Returns false if there is none. */
export async function dropForgottenDevice(tx: Tx): Promise<boolean> {
  const rows = await tx.run(sql`
    DELETE FROM device_codes WHERE device_hash IN (
      SELECT device_hash FROM device_codes WHERE polled_time = '' AND answer = '' ORDER BY create_time LIMIT 1)`)
  return rows > 0
}

const columns = sql`
  device_hash AS "deviceHash", user_hash AS "userHash", client_id AS "clientId", asked, network, source,
  user_agent AS "userAgent", answer, session_uid AS "sessionUid", poll_seconds AS "pollSeconds",
  polled_time AS "polledTime", create_time AS "createTime", expire_time AS "expireTime"`

export async function findByUserCode(reader: Reader, userHash: string): Promise<DeviceCode | undefined> {
  return reader.get(sql`SELECT ${columns} FROM device_codes WHERE user_hash = ${userHash}`)
}

export async function findByDeviceCode(reader: Reader, deviceHash: string): Promise<DeviceCode | undefined> {
  return reader.get(sql`SELECT ${columns} FROM device_codes WHERE device_hash = ${deviceHash}`)
}

/** Stores the answer to a device code. Returns false if the code is not waiting for an answer. */
export async function answerDevice(
  tx: Tx,
  userHash: string,
  { answer, sessionUid, now }: { answer: DeviceAnswer; sessionUid: string; now: string },
): Promise<boolean> {
  const rows = await tx.run(sql`
    UPDATE device_codes SET answer = ${answer}, session_uid = ${sessionUid}
     WHERE user_hash = ${userHash} AND answer = '' AND expire_time > ${now}`)
  return rows > 0
}

export async function notePoll(tx: Tx, deviceHash: string, polledTime: string, pollSeconds: number): Promise<void> {
  await tx.run(sql`
    UPDATE device_codes SET polled_time = ${polledTime}, poll_seconds = ${pollSeconds} WHERE device_hash = ${deviceHash}`)
}

/** Deletes a device code. Returns false if the code was already deleted. */
export async function takeDeviceCode(tx: Tx, deviceHash: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM device_codes WHERE device_hash = ${deviceHash}`)) > 0
}

/** Authorization code that a program gets in a loopback redirect. */
export type SignInCode = {
  codeHash: string
  sessionUid: string
  clientId: string
  redirect: string
  /** PKCE code challenge, method S256. */
  challenge: string
  nonce: string
  /** JSON of the token request. */
  asked: string
  expireTime: string
}

export async function insertSignInCode(tx: Tx, one: SignInCode): Promise<void> {
  await tx.run(sql`
    INSERT INTO sign_in_codes (code_hash, session_uid, client_id, redirect, challenge, nonce, asked, used, expire_time)
    VALUES (${one.codeHash}, ${one.sessionUid}, ${one.clientId}, ${one.redirect}, ${one.challenge}, ${one.nonce},
            ${one.asked}, 0, ${one.expireTime})`)
}

export async function findSignInCode(
  reader: Reader,
  codeHash: string,
): Promise<(SignInCode & { used: number }) | undefined> {
  return reader.get(sql`
    SELECT code_hash AS "codeHash", session_uid AS "sessionUid", client_id AS "clientId", redirect, challenge, nonce, asked,
           used, expire_time AS "expireTime"
      FROM sign_in_codes WHERE code_hash = ${codeHash}`)
}

/** Marks an authorization code as used. Returns false if it was used before. */
export async function useSignInCode(tx: Tx, codeHash: string): Promise<boolean> {
  const rows = await tx.run(sql`UPDATE sign_in_codes SET used = 1 WHERE code_hash = ${codeHash} AND used = 0`)
  return rows > 0
}

export type HeadlessSignIn = { publicKey: string; encrypted: Uint8Array; expireTime: string }

/** Reserves a key for a headless sign-in. The encrypted token is stored later. Returns false if the key was used before. */
export async function reserveHeadless(
  tx: Tx,
  codeHash: string,
  identity: string,
  expireTime: string,
): Promise<boolean> {
  const rows = await tx.run(sql`
    INSERT INTO headless_sign_ins (code_hash, public_key, encrypted, expire_time, identity_uid)
    VALUES (${codeHash}, '', ${new Uint8Array()}, ${expireTime}, ${identity})
        ON CONFLICT (code_hash) DO NOTHING`)
  return rows > 0
}

export async function fillHeadless(
  tx: Tx,
  codeHash: string,
  { publicKey, encrypted }: Omit<HeadlessSignIn, 'expireTime'>,
): Promise<void> {
  await tx.run(sql`
    UPDATE headless_sign_ins SET public_key = ${publicKey}, encrypted = ${encrypted} WHERE code_hash = ${codeHash}`)
}

/** Number of headless sign-ins that wait for their program: of one person, and in total. */
export async function countHeadless(
  reader: Reader,
  identity: string,
  now: string,
): Promise<{ ofIdentity: number; all: number }> {
  const own = await countRows(
    reader,
    sql`FROM headless_sign_ins WHERE identity_uid = ${identity} AND expire_time > ${now}`,
  )
  const all = await countRows(reader, sql`FROM headless_sign_ins WHERE expire_time > ${now}`)
  return { ofIdentity: own, all }
}

/** Deletes and returns an encrypted token, so that the token can be fetched only once. */
export async function takeHeadless(tx: Tx, codeHash: string): Promise<HeadlessSignIn | undefined> {
  return tx.get(sql`
    DELETE FROM headless_sign_ins WHERE code_hash = ${codeHash} AND public_key <> ''
    RETURNING public_key AS "publicKey", encrypted, expire_time AS "expireTime"`)
}

/** Deletes up to `limit` expired rows of each kind. If an authorization code was never used, its session is deleted too. */
export async function sweepGrants(
  tx: Tx,
  { now, forgotten }: { now: string; forgotten: string },
  limit: number,
): Promise<number> {
  const devices = await deleteOldest(tx, { table: 'device_codes', key: 'device_hash' }, forgotten, limit)
  const sessions = await tx.run(sql`
    DELETE FROM sessions WHERE uid IN (
      SELECT session_uid FROM sign_in_codes WHERE expire_time <= ${now} AND used = 0 ORDER BY expire_time LIMIT ${limit})`)
  const codes = await deleteOldest(tx, { table: 'sign_in_codes', key: 'code_hash' }, forgotten, limit)
  const headless = await deleteOldest(tx, { table: 'headless_sign_ins', key: 'code_hash' }, now, limit)
  return devices + sessions + codes + headless
}

/**
 * Refresh tokens of a session: hashes of the current and the previous token, and the encrypted key from which the next token is
 * computed.
 */
export type RefreshFamily = {
  sessionUid: string
  familyHash: string
  currentHash: string
  /** Empty if no token was used yet. */
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

/** Replaces the current refresh token. Returns false if the sent token is not the current one. */
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
