import { deleteOldest, listByUid } from '#db/bulk.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import type { AccessRequest } from './access-requests.model.ts'

const columns = sql`
  t.uid, t.identity_uid AS "identityUid", t.name, t.email, t.state, t.create_time AS "createTime",
  t.ask_time AS "askTime", t.expire_time AS "expireTime"`

export async function findRequest(reader: Reader, uid: string): Promise<AccessRequest | undefined> {
  return reader.get(sql`SELECT ${columns} FROM access_requests t WHERE t.uid = ${uid}`)
}

/** Access request of a person to an organization, in any state. */
export async function findRequestOf(
  reader: Reader,
  organization: string,
  identity: string,
): Promise<AccessRequest | undefined> {
  return reader.get(sql`
    SELECT ${columns} FROM access_requests t WHERE t.parent_uid = ${organization} AND t.identity_uid = ${identity}`)
}

/** Access requests of a person to all organizations. */
export async function requestsOf(reader: Reader, identity: string): Promise<AccessRequest[]> {
  return reader.all(sql`SELECT ${columns} FROM access_requests t WHERE t.identity_uid = ${identity} ORDER BY t.uid`)
}

/** Stores an access request. An earlier request of the same person to the organization is replaced. */
export async function putRequest(tx: Tx, request: AccessRequest): Promise<void> {
  const { uid, identityUid, name, email, state, createTime, askTime, expireTime } = request
  await tx.run(sql`
    INSERT INTO access_requests (uid, parent_uid, identity_uid, name, email, state, create_time, ask_time, expire_time)
    VALUES (${uid}, ${parentOf(uid)}, ${identityUid}, ${name}, ${email}, ${state}, ${createTime}, ${askTime}, ${expireTime})
        ON CONFLICT (parent_uid, identity_uid) DO UPDATE
       SET name = excluded.name, email = excluded.email, state = excluded.state, ask_time = excluded.ask_time,
           expire_time = excluded.expire_time`)
}

/** Sets a waiting request to refused. Returns false if it is no longer waiting. */
export async function refuseRequest(tx: Tx, uid: string, expireTime: string): Promise<boolean> {
  const rows = await tx.run(sql`
    UPDATE access_requests SET state = 'refused', expire_time = ${expireTime}
     WHERE uid = ${uid} AND state = 'waiting'`)
  return rows > 0
}

/** Deletes a waiting request. Returns false if it is no longer waiting. */
export async function deleteWaiting(tx: Tx, uid: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM access_requests WHERE uid = ${uid} AND state = 'waiting'`)) > 0
}

/** Scope of a list: waiting requests to an organization. */
export type AccessRequestScope = { organization: string; now: string }

export const requestList = listByUid({ table: 'access_requests', columns }, waiting, (row: AccessRequest) => row)

function waiting({ organization, now }: AccessRequestScope): Sql {
  return sql`t.parent_uid = ${organization} AND t.state = 'waiting' AND t.expire_time > ${now}`
}

/** Deletes up to 100 expired access requests, of any organization. */
export async function sweepRequests(tx: Tx, now: string): Promise<void> {
  await deleteOldest(tx, { table: 'access_requests', key: 'uid' }, now, 100)
}
