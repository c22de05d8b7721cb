import { holding, madeList } from '#db/made-below.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { Age } from '../views/views.model.ts'
import type { Mode, PullRule, PullRuleException } from './pull-rules.model.ts'

type Lists = 'tags' | 'exceptTags' | 'identities'
type Row = Omit<PullRule, Lists | 'age'> & Record<Lists, string> & { ms: number; hold: number; countFrom: string }

const ruleColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.name, t.tags, t.except_tags AS "exceptTags", t.identities,
  t.below_group AS "belowGroup", t.age_ms AS ms, t.hold_ms AS hold, t.count_from AS "countFrom", t.mode,
  t.create_time AS "createTime", t.update_time AS "updateTime"`

function fromRow({ ms, hold, countFrom, tags, exceptTags, identities, mode, ...row }: Row): PullRule {
  const listOf = (text: string) => JSON.parse(text) as string[]
  return {
    ...row,
    tags: listOf(tags),
    exceptTags: listOf(exceptTags),
    identities: listOf(identities),
    age: { ms, hold, countFrom: countFrom as Age['countFrom'] },
    mode: mode as Mode,
  }
}

export async function insertRule(tx: Tx, group: string, rule: PullRule): Promise<void> {
  const { uid, scopeUid, name, tags, exceptTags, identities, belowGroup, age, mode, createTime, updateTime } = rule
  await tx.run(sql`
    INSERT INTO pull_rules (uid, group_uid, scope_uid, name, tags, except_tags, identities, below_group, age_ms, hold_ms,
                            count_from, mode, create_time, update_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${name}, ${JSON.stringify(tags)}, ${JSON.stringify(exceptTags)},
            ${JSON.stringify(identities)}, ${belowGroup}, ${age.ms}, ${age.hold}, ${age.countFrom}, ${mode},
            ${createTime}, ${updateTime})`)
}

export async function patchRule(tx: Tx, rule: PullRule): Promise<void> {
  const { uid, name, tags, exceptTags, identities, belowGroup, age, mode, updateTime } = rule
  await tx.run(sql`
    UPDATE pull_rules SET name = ${name}, tags = ${JSON.stringify(tags)}, except_tags = ${JSON.stringify(exceptTags)},
           identities = ${JSON.stringify(identities)}, below_group = ${belowGroup}, age_ms = ${age.ms},
           hold_ms = ${age.hold}, count_from = ${age.countFrom}, mode = ${mode}, update_time = ${updateTime}
     WHERE uid = ${uid}`)
}

/** `false` when there was none. */
export async function deleteRule(tx: Tx, uid: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM pull_rules WHERE uid = ${uid}`)) === 1
}

export async function findRule(reader: Reader, uid: string): Promise<PullRule | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${ruleColumns} FROM pull_rules t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

export const ruleList = madeList({ table: 'pull_rules', columns: ruleColumns }, fromRow, () => [])

export async function anyRule(reader: Reader): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 AS found FROM pull_rules LIMIT 1`)) !== undefined
}

const exceptionColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.digest, t.reason, t.actor, t.create_time AS "createTime",
  t.expire_time AS "expireTime", t.revoke_time AS "revokeTime", t.revoked_by AS "revokedBy"`

export async function insertException(tx: Tx, group: string, exception: PullRuleException): Promise<void> {
  const { uid, scopeUid, digest, reason, actor, createTime, expireTime } = exception
  await tx.run(sql`
    INSERT INTO pull_rule_exceptions (uid, group_uid, scope_uid, digest, reason, actor, create_time, expire_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${digest}, ${reason}, ${actor}, ${createTime}, ${expireTime})`)
}

export async function findException(reader: Reader, uid: string): Promise<PullRuleException | undefined> {
  return reader.get<PullRuleException>(sql`
    SELECT ${exceptionColumns} FROM pull_rule_exceptions t WHERE t.uid = ${uid}`)
}

export async function endException(tx: Tx, uid: string, time: string, actor: string): Promise<void> {
  await tx.run(sql`
    UPDATE pull_rule_exceptions SET revoke_time = ${time}, revoked_by = ${actor}
     WHERE uid = ${uid} AND revoke_time = ''`)
}

export const exceptionList = madeList(
  { table: 'pull_rule_exceptions', columns: exceptionColumns },
  (row: PullRuleException) => row,
  holding('revoke_time'),
)
