import { countRows, deleteOldest, listByUid } from '#db/bulk.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { operatorUid, rootOf } from '#lib/uid.ts'
import type { PushToken } from './push-tokens.model.ts'

type Row = Omit<PushToken, 'repos' | 'push' | 'identityUid'> & {
  repos: string
  push: number
  identityUid: string | null
}
/** Push token with the hash of its secret. Only used to compare secrets. */
export type Secured = PushToken & { secretHash: string }

const columns = sql`
  t.uid, t.identity_uid AS "identityUid", t.user_name AS "userName", t.name, t.parent_uid AS "group", t.repos, t.push,
  t.provider, t.organization, t.external_id AS "externalId", t.issuer, t.session_uid AS "sessionUid", t.create_time AS "createTime",
  t.expire_time AS "expireTime", t.last_used_time AS "lastUsedTime", t.last_used_from AS "lastUsedFrom"`

function fromRow<T extends Row>({ repos, push, identityUid, ...row }: T) {
  return {
    ...row,
    identityUid: identityUid ?? operatorUid,
    repos: JSON.parse(repos) as string[],
    push: push === 1,
  }
}

export async function insertPushToken(tx: Tx, token: PushToken, secretHash: string): Promise<void> {
  const { uid, identityUid, userName, name, group, repos, push, provider, organization, externalId, issuer } = token
  const { sessionUid } = token
  const identity = identityUid === operatorUid ? null : identityUid
  await tx.run(sql`
    INSERT INTO push_tokens (uid, identity_uid, parent_uid, root_uid, user_name, secret_hash, name, repos, push, provider,
                             organization, external_id, issuer, session_uid, create_time, expire_time, last_used_time, last_used_from)
    VALUES (${uid}, ${identity}, ${group}, ${rootOf(group)}, ${userName}, ${secretHash}, ${name}, ${JSON.stringify(repos)},
            ${Number(push)}, ${provider}, ${organization}, ${externalId}, ${issuer}, ${sessionUid}, ${token.createTime},
            ${token.expireTime}, ${token.lastUsedTime}, ${token.lastUsedFrom})`)
}

export async function findPushToken(reader: Reader, uid: string): Promise<PushToken | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM push_tokens t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

export async function findByUserName(reader: Reader, userName: string): Promise<Secured | undefined> {
  const row = await reader.get<Row & { secretHash: string }>(sql`
    SELECT ${columns}, t.secret_hash AS "secretHash" FROM push_tokens t WHERE t.user_name = ${userName}`)
  return row && fromRow(row)
}

/** Deletes a push token. Returns false if the token was already deleted. */
export async function deletePushToken(tx: Tx, uid: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM push_tokens WHERE uid = ${uid}`)) > 0
}

/** Records a use of a push token. Does nothing if a later use is recorded. */
export async function notePushTokenUse(tx: Tx, uid: string, time: string, from: string): Promise<void> {
  await tx.run(sql`
    UPDATE push_tokens SET last_used_time = ${time}, last_used_from = ${from}
     WHERE uid = ${uid} AND last_used_time < ${time}`)
}

/** Up to `limit` push tokens that were created with a sign-in provider. If `externalId` is set, only those of this person. */
export async function pushTokensOfProvider(
  reader: Reader,
  provider: string,
  externalId: string | undefined,
  limit: number,
): Promise<PushToken[]> {
  const byExternalId = externalId === undefined ? sql`` : sql`AND t.external_id = ${externalId}`
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM push_tokens t WHERE t.provider = ${provider} ${byExternalId} LIMIT ${limit}`)
  return rows.map(fromRow)
}

/** Up to `limit` push tokens that were created in a session. */
export async function pushTokensOfSession(reader: Reader, session: string, limit: number): Promise<PushToken[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM push_tokens t WHERE t.session_uid = ${session} AND t.session_uid <> '' LIMIT ${limit}`)
  return rows.map(fromRow)
}

/** Number of valid push tokens of a creator and of an organization. */
export async function countLive(reader: Reader, identity: string, organization: string, now: string): Promise<Counts> {
  const ofMaker = identity === operatorUid ? sql`t.identity_uid IS NULL` : sql`t.identity_uid = ${identity}`
  const count = (where: Sql) => countRows(reader, sql`FROM push_tokens t WHERE ${where} AND t.expire_time > ${now}`)
  return { ofMaker: await count(ofMaker), ofOrganization: await count(sql`t.root_uid = ${organization}`) }
}
type Counts = { ofMaker: number; ofOrganization: number }

/**
 * Scope of a list: push tokens of a creator, optionally only in one organization; or push tokens in a group and everything below
 * it.
 */
export type PushTokenScope = { identity: string; organization: string } | { group: string }

export const pushTokenList = listByUid({ table: 'push_tokens', columns }, at, (row: Row) => fromRow(row))

/**
 * SQL condition for a scope. The tokens of an organization are limited in number, so those of a folder are filtered from them.
 */
function at(scope: PushTokenScope): Sql {
  if ('group' in scope) {
    const { group } = scope
    if (rootOf(group) === group) return sql`t.root_uid = ${group}`
    const [from, to] = [`${group}/`, `${group}0`]
    return sql`t.root_uid = ${rootOf(group)}
           AND (t.parent_uid = ${group} OR (t.parent_uid >= ${from} AND t.parent_uid < ${to}))`
  }
  const { identity, organization } = scope
  const maker = identity === operatorUid ? sql`t.identity_uid IS NULL` : sql`t.identity_uid = ${identity}`
  return organization === '' ? maker : sql`${maker} AND t.root_uid = ${organization}`
}

/** Deletes up to `limit` push tokens that expired before a time. */
export async function sweepPushTokens(tx: Tx, before: string, limit: number): Promise<number> {
  return deleteOldest(tx, { table: 'push_tokens', key: 'uid' }, before, limit)
}
