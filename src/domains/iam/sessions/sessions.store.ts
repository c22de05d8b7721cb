import { deleteOldest, listByUid } from '#db/bulk.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { decodeBits, encodeBits } from '#lib/capability-set.ts'
import type { GroupRole, Profile, Session, SessionBound } from './sessions.model.ts'

type Row = Omit<Session, 'act' | 'profile' | 'granted' | 'groupRoles' | 'bound'> & {
  act: string
  profile: string
  granted: string
  groupRoles: string
  bound: string
}

const columns = sql`
  t.uid, t.identity_uid AS "identityUid", t.kind, t.provider, t.organization, t.upstream_sid AS "upstreamSid",
  t.external_id AS "externalId", t.act, t.profile, t.granted, t.group_roles AS "groupRoles", t.bound, t.auth_time AS "authTime", t.source, t.user_agent AS "userAgent", t.create_time AS "createTime",
  t.last_used_time AS "lastUsedTime", t.end_time AS "endTime", t.expire_time AS "expireTime"`

function fromRow({ act, profile, granted, groupRoles, bound, ...row }: Row): Session {
  const masks = Object.entries(JSON.parse(granted) as Record<string, string>)
  return {
    ...row,
    act: JSON.parse(act) as Record<string, string>,
    profile: JSON.parse(profile) as Profile,
    granted: new Map(masks.map(([scope, text]) => [scope, decodeBits(text) ?? 0n])),
    groupRoles: groupRoles === '' ? [] : (JSON.parse(groupRoles) as GroupRole[]),
    ...(bound !== '' && { bound: JSON.parse(bound) as SessionBound }),
  }
}

/** Inserts a session. `cookieHash` is null for a client. `idToken` is null if sign-out at the provider will not need it. */
export async function insertSession(
  tx: Tx,
  session: Session,
  { cookieHash, idToken }: { cookieHash: string | null; idToken: Uint8Array | null },
): Promise<void> {
  const { uid, identityUid, kind, provider, organization, upstreamSid, externalId, act, profile, authTime } = session
  const bound = session.bound ? JSON.stringify(session.bound) : ''
  const granted = Object.fromEntries([...session.granted].map(([scope, mask]) => [scope, encodeBits(mask)]))
  await tx.run(sql`
    INSERT INTO sessions (uid, identity_uid, kind, cookie_hash, provider, organization, upstream_sid, external_id, act, profile, granted, group_roles, bound,
                          id_token, auth_time, source, user_agent, create_time, last_used_time, end_time, expire_time)
    VALUES (${uid}, ${identityUid}, ${kind}, ${cookieHash}, ${provider}, ${organization}, ${upstreamSid}, ${externalId},
            ${JSON.stringify(act)}, ${JSON.stringify(profile)}, ${JSON.stringify(granted)}, ${JSON.stringify(session.groupRoles)}, ${bound}, ${idToken}, ${authTime},
            ${session.source}, ${session.userAgent}, ${session.createTime}, ${session.lastUsedTime}, ${session.endTime},
            ${session.expireTime})`)
}

/** Session of this uid, even if it has ended. */
export async function findSession(reader: Reader, uid: string): Promise<Session | undefined> {
  return fromOptionalRow(await reader.get<Row>(sql`SELECT ${columns} FROM sessions t WHERE t.uid = ${uid}`))
}

export async function findByCookie(reader: Reader, cookieHash: string): Promise<Session | undefined> {
  return fromOptionalRow(
    await reader.get<Row>(sql`SELECT ${columns} FROM sessions t WHERE t.cookie_hash = ${cookieHash}`),
  )
}

/** Encrypted ID token of the sign-in that started the session. */
export async function idTokenOf(reader: Reader, uid: string): Promise<Uint8Array | undefined> {
  const row = await reader.get<{ token: Uint8Array | null }>(sql`
    SELECT id_token AS token FROM sessions WHERE uid = ${uid}`)
  return row?.token ?? undefined
}

/** Records a use of a session, and sets its new end. */
export async function touchSession(tx: Tx, uid: string, usedTime: string, endTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE sessions SET last_used_time = ${usedTime}, end_time = ${endTime}
     WHERE uid = ${uid} AND last_used_time < ${usedTime}`)
}

/** Deletes a session with its refresh tokens. Returns false if the session was already deleted. */
export async function deleteSession(tx: Tx, uid: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM sessions WHERE uid = ${uid}`)) > 0
}

/** Deletes all sessions of a deleted provider. */
export async function deleteSessionsOfProvider(tx: Tx, provider: string): Promise<void> {
  await tx.run(sql`DELETE FROM sessions WHERE provider = ${provider}`)
}

/**
 * Sessions of a person that are limited to the organization, the oldest first. With an empty `organization`, sessions without
 * such a limit.
 */
export async function sessionsOf(reader: Reader, identity: string, organization: string): Promise<Session[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM sessions t
     WHERE t.identity_uid = ${identity} AND t.organization = ${organization}
     ORDER BY t.create_time, t.uid`)
  return rows.map(fromRow)
}

/** Up to `limit` sessions of a person, with any provider. */
export async function sessionsOfIdentity(reader: Reader, identity: string, limit: number): Promise<Session[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM sessions t WHERE t.identity_uid = ${identity} ORDER BY t.uid LIMIT ${limit}`)
  return rows.map(fromRow)
}

/** Selects sessions by the `sid` of the provider, by person, or by external ID. */
export type SessionsOf = { sid?: string; identity?: string; externalId?: string }

/** Up to `limit` sessions of a provider. */
export async function sessionsOfProvider(
  reader: Reader,
  provider: string,
  of: SessionsOf,
  limit: number,
): Promise<Session[]> {
  const byExternalId = of.externalId === undefined ? sql`` : sql`AND t.external_id = ${of.externalId}`
  const bySid = of.sid === undefined ? sql`` : sql`AND t.upstream_sid = ${of.sid}`
  const byIdentity = of.identity === undefined ? sql`` : sql`AND t.identity_uid = ${of.identity}`
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM sessions t WHERE t.provider = ${provider} ${bySid} ${byIdentity} ${byExternalId} LIMIT ${limit}`)
  return rows.map(fromRow)
}

/**
 * Scope of a list: active sessions of a person, of an organization, or of a person in an organization. Sessions of providers in
 * the settings are listed only if `trusted` has the provider.
 */
export type SessionScope = { identity?: string; organization?: string; trusted: readonly string[]; now: string }

export const sessionList = listByUid({ table: 'sessions', columns }, at, fromRow)

function at({ identity, organization, trusted, now }: SessionScope): Sql {
  const ofIdentity = identity === undefined ? sql`` : sql`t.identity_uid = ${identity} AND`
  const ofOrganization = organization === undefined ? sql`` : sql`t.organization = ${organization} AND`
  const named = list(['', ...trusted])
  return sql`${ofIdentity} ${ofOrganization} t.end_time > ${now} AND (t.organization <> '' OR t.provider IN (${named}))`
}

/**
 * Sessions of providers in the settings that were last used before `before`. They are in order of the uid, after a given uid; at
 * most `limit`.
 */
export async function unusedSessions(
  reader: Reader,
  { after, before, limit }: { after: string; before: string; limit: number },
): Promise<Session[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM sessions t
     WHERE t.organization = '' AND t.uid > ${after} AND t.provider <> '' AND t.last_used_time <= ${before}
     ORDER BY t.uid LIMIT ${limit}`)
  return rows.map(fromRow)
}

/** Deletes up to `limit` sessions that have ended. */
export async function sweepSessions(tx: Tx, now: string, limit: number): Promise<number> {
  return deleteOldest(tx, { table: 'sessions', key: 'uid', column: 'end_time' }, now, limit)
}

function fromOptionalRow(row: Row | undefined): Session | undefined {
  return row && fromRow(row)
}
