// Codes and tokens of programs for which a user signs in: device codes, codes of a loopback redirect, and headless sign-ins.
import { countRows, deleteOldest } from '#db/bulk.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'

export type DeviceAnswer = '' | 'approved' | 'refused'

/** A program that waits for a user to enter its code. */
export type DeviceCode = {
  deviceHash: string
  userHash: string
  clientId: string
  /** JSON of the requested terms. */
  asked: string
  /** Network that limits count as one client. `source` is the address itself. */
  network: string
  source: string
  userAgent: string
  answer: DeviceAnswer
  /** Session that has approved the program. Empty before. */
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

/** Number of waiting programs in the network, in the /48 around an IPv6 network, and in total. */
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

/** Deletes the oldest code that no program has polled. Returns false if there is none. */
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

/** Answers a device code. Returns false if it is not waiting for an answer. */
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

/** Deletes a device code. Returns false if it was already gone. */
export async function takeDeviceCode(tx: Tx, deviceHash: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM device_codes WHERE device_hash = ${deviceHash}`)) > 0
}

/** Authorization code that a program on loopback gets with the redirect. */
export type SignInCode = {
  codeHash: string
  sessionUid: string
  clientId: string
  redirect: string
  /** Code challenge of the method S256. */
  challenge: string
  nonce: string
  /** JSON of the requested terms. */
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

/** Marks a code as used. Returns false if it was used before. */
export async function useSignInCode(tx: Tx, codeHash: string): Promise<boolean> {
  const rows = await tx.run(sql`UPDATE sign_in_codes SET used = 1 WHERE code_hash = ${codeHash} AND used = 0`)
  return rows > 0
}

export type HeadlessSignIn = { publicKey: string; encrypted: Uint8Array; expireTime: string }

/** Reserves the key for a headless sign-in, before there is a token to fetch. Returns false if the key was used before. */
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

/** Number of tokens that wait to be fetched: of one person, and in total. */
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

/** Deletes and returns the token, so that it is fetched once. */
export async function takeHeadless(tx: Tx, codeHash: string): Promise<HeadlessSignIn | undefined> {
  return tx.get(sql`
    DELETE FROM headless_sign_ins WHERE code_hash = ${codeHash} AND public_key <> ''
    RETURNING public_key AS "publicKey", encrypted, expire_time AS "expireTime"`)
}

/** Deletes expired rows, at most `limit` of each kind. Deletes the session of an unused code with the code. */
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

/** Refresh tokens of a session: hashes, and the sealed key that makes the next token. */
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

/** Rotates the token. Returns false if it is not the current one any more. */
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
