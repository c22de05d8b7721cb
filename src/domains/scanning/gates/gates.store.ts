import { madeBelow } from '#db/made-below.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Gate, GateException, GateRule, Mode } from './gates.model.ts'

type Row = Omit<Gate, 'rule' | 'mode'> & { rule: string; mode: string }

const gateColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.name, t.mode, t.rule, t.exempt_pulled_days AS "exemptPulledDays",
  t.create_time AS "createTime", t.update_time AS "updateTime"`

function fromRow({ rule, mode, exemptPulledDays, ...row }: Row): Gate {
  return {
    ...row,
    mode: mode as Mode,
    rule: JSON.parse(rule) as GateRule,
    exemptPulledDays: Number(exemptPulledDays),
  }
}

export async function insertGate(tx: Tx, group: string, gate: Gate): Promise<void> {
  const { uid, scopeUid, name, mode, rule, exemptPulledDays, createTime, updateTime } = gate
  await tx.run(sql`
    INSERT INTO gates (uid, group_uid, scope_uid, name, mode, rule, exempt_pulled_days, create_time, update_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${name}, ${mode}, ${JSON.stringify(rule)}, ${exemptPulledDays},
            ${createTime}, ${updateTime})`)
}

export async function patchGate(tx: Tx, gate: Gate): Promise<void> {
  const { uid, name, mode, rule, exemptPulledDays, updateTime } = gate
  await tx.run(sql`
    UPDATE gates SET name = ${name}, mode = ${mode}, rule = ${JSON.stringify(rule)},
           exempt_pulled_days = ${exemptPulledDays}, update_time = ${updateTime}
     WHERE uid = ${uid}`)
}

export async function deleteGate(tx: Tx, uid: string): Promise<void> {
  await tx.run(sql`DELETE FROM gates WHERE uid = ${uid}`)
}

export async function findGate(reader: Reader, uid: string): Promise<Gate | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${gateColumns} FROM gates t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** Those made at a place and below, in the order of their uids. */
export async function gatesBelow(reader: Reader, place: string, after: string, most: number): Promise<Gate[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${gateColumns} FROM gates t WHERE ${madeBelow(place, after)} ORDER BY t.uid LIMIT ${most}`)
  return rows.map(fromRow)
}

export async function anyGate(reader: Reader): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM gates LIMIT 1`)) !== undefined
}

const exceptionColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.digest, t.reason, t.actor, t.create_time AS "createTime",
  t.expire_time AS "expireTime", t.revoke_time AS "revokeTime", t.revoked_by AS "revokedBy"`

export async function insertException(tx: Tx, group: string, exception: GateException): Promise<void> {
  const { uid, scopeUid, digest, reason, actor, createTime, expireTime } = exception
  await tx.run(sql`
    INSERT INTO gate_exceptions (uid, group_uid, scope_uid, digest, reason, actor, create_time, expire_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${digest}, ${reason}, ${actor}, ${createTime}, ${expireTime})`)
}

export async function findException(reader: Reader, uid: string): Promise<GateException | undefined> {
  return reader.get<GateException>(sql`SELECT ${exceptionColumns} FROM gate_exceptions t WHERE t.uid = ${uid}`)
}

export async function endException(tx: Tx, uid: string, time: string, actor: string): Promise<void> {
  await tx.run(sql`
    UPDATE gate_exceptions SET revoke_time = ${time}, revoked_by = ${actor} WHERE uid = ${uid} AND revoke_time = ''`)
}

/** Those made at a place and below, in the order of their uids; with `now` only those that hold. */
export async function exceptionsBelow(
  reader: Reader,
  place: string,
  { after, most, now }: { after: string; most: number; now?: string | undefined },
): Promise<GateException[]> {
  const live = now === undefined ? sql`` : sql`AND t.revoke_time = '' AND t.expire_time > ${now}`
  return reader.all<GateException>(sql`
    SELECT ${exceptionColumns} FROM gate_exceptions t
     WHERE ${madeBelow(place, after)} ${live} ORDER BY t.uid LIMIT ${most}`)
}
