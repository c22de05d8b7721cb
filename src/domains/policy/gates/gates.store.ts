import { holding, madeList } from '#db/made-below.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Gate, GateException, GateRule, Mode, UnknownSeverity } from './gates.model.ts'

type Row = Omit<Gate, 'rule' | 'mode'> & { rule: string; mode: string; unknownSeverity: string }

const gateColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.name, t.mode, t.rule, t.exempt_pulled_days AS "exemptPulledDays",
  t.unknown_severity AS "unknownSeverity",
  t.create_time AS "createTime", t.update_time AS "updateTime"`

function fromRow({ rule, mode, exemptPulledDays, unknownSeverity, ...row }: Row): Gate {
  const stored = JSON.parse(rule) as GateRule
  return {
    ...row,
    mode: mode as Mode,
    rule:
      stored.kind === 'vulnerabilities' ? { ...stored, unknownSeverity: unknownSeverity as UnknownSeverity } : stored,
    exemptPulledDays: Number(exemptPulledDays),
  }
}

/** The columns of a rule. Releases that do not know the severity column rewrite the JSON, so it is not part of it. */
function ruleColumns(rule: GateRule): { json: string; unknownSeverity: UnknownSeverity } {
  if (rule.kind !== 'vulnerabilities') return { json: JSON.stringify(rule), unknownSeverity: 'NOT_COUNTED' }
  const { unknownSeverity, ...rest } = rule
  return { json: JSON.stringify(rest), unknownSeverity }
}

export async function insertGate(tx: Tx, group: string, gate: Gate): Promise<void> {
  const { uid, scopeUid, name, mode, rule, exemptPulledDays, createTime, updateTime } = gate
  const { json, unknownSeverity } = ruleColumns(rule)
  await tx.run(sql`
    INSERT INTO gates (uid, group_uid, scope_uid, name, mode, rule, unknown_severity, exempt_pulled_days, create_time,
                       update_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${name}, ${mode}, ${json}, ${unknownSeverity}, ${exemptPulledDays},
            ${createTime}, ${updateTime})`)
}

export async function patchGate(tx: Tx, gate: Gate): Promise<void> {
  const { uid, name, mode, rule, exemptPulledDays, updateTime } = gate
  const { json, unknownSeverity } = ruleColumns(rule)
  await tx.run(sql`
    UPDATE gates SET name = ${name}, mode = ${mode}, rule = ${json}, unknown_severity = ${unknownSeverity},
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

export const gateList = madeList({ table: 'gates', columns: gateColumns }, fromRow, () => [])

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

export const exceptionList = madeList(
  { table: 'gate_exceptions', columns: exceptionColumns },
  (row: GateException) => row,
  holding('revoke_time'),
)
