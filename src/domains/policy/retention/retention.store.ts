// Rules, holds and quarantines: what people say of what is kept.
import { type MadeList, madeList } from '#db/made-below.ts'
import { ident, type Reader, sql, type Tx } from '#db/sql.ts'
import { formerRules } from './former-rules.store.ts'
import { type Mark, mostMarks, mostRules, type Placed, type Retention, type TagLaw } from './retention.model.ts'

/** The tables of rules, and of what they say. */
export type RuleTables = { retention_rules: Retention; tag_rules: TagLaw }
export type RuleTable = keyof RuleTables
type Row = Omit<Placed<unknown>, 'says'> & { says: string }

const ruleColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.says, t.create_time AS "createTime", t.update_time AS "updateTime"`

function fromRow<T>(row: Row): Placed<T> {
  return { ...row, says: JSON.parse(row.says) as T }
}

export async function insertRule(tx: Tx, table: RuleTable, group: string, rule: Placed<unknown>): Promise<void> {
  const { uid, scopeUid, says, createTime, updateTime } = rule
  await tx.run(sql`
    INSERT INTO ${ident(table)} (uid, group_uid, scope_uid, says, create_time, update_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${JSON.stringify(says)}, ${createTime}, ${updateTime})`)
}

export async function patchRule(tx: Tx, table: RuleTable, { uid, says, updateTime }: Placed<unknown>): Promise<void> {
  await tx.run(sql`
    UPDATE ${ident(table)} SET says = ${JSON.stringify(says)}, update_time = ${updateTime} WHERE uid = ${uid}`)
}

/** `false` when there was none. */
export async function deleteRule(tx: Tx, table: RuleTable, uid: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM ${ident(table)} WHERE uid = ${uid}`)) === 1
}

export async function findRule<K extends RuleTable>(
  reader: Reader,
  table: K,
  uid: string,
): Promise<Placed<RuleTables[K]> | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${ruleColumns} FROM ${ident(table)} t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** The rules of each table. */
export const ruleLists: { [K in RuleTable]: MadeList<Placed<RuleTables[K]>, unknown> } = {
  retention_rules: madeList({ table: 'retention_rules', columns: ruleColumns }, fromRow<Retention>, () => []),
  tag_rules: madeList({ table: 'tag_rules', columns: ruleColumns }, fromRow<TagLaw>, () => []),
}

export type MarkTable = 'holds' | 'quarantined'
type MarkRow = Omit<Mark, 'tags'> & { tags: string }

const markColumns = sql`
  t.uid, t.scope_uid AS "scopeUid", t.digest, t.tags, t.reason, t.actor, t.create_time AS "createTime",
  t.release_time AS "releaseTime", t.released_by AS "releasedBy"`

const markOf = (row: MarkRow): Mark => ({ ...row, tags: JSON.parse(row.tags) as string[] })

export async function insertMark(tx: Tx, table: MarkTable, group: string, mark: Mark): Promise<void> {
  const { uid, scopeUid, digest, tags, reason, actor, createTime } = mark
  await tx.run(sql`
    INSERT INTO ${ident(table)} (uid, group_uid, scope_uid, digest, tags, reason, actor, create_time)
    VALUES (${uid}, ${group}, ${scopeUid}, ${digest}, ${JSON.stringify(tags)}, ${reason}, ${actor}, ${createTime})`)
}

export async function findMark(reader: Reader, table: MarkTable, uid: string): Promise<Mark | undefined> {
  const row = await reader.get<MarkRow>(sql`SELECT ${markColumns} FROM ${ident(table)} t WHERE t.uid = ${uid}`)
  return row && markOf(row)
}

export async function releaseMark(tx: Tx, table: MarkTable, { uid, releaseTime, releasedBy }: Mark): Promise<void> {
  await tx.run(sql`
    UPDATE ${ident(table)} SET release_time = ${releaseTime}, released_by = ${releasedBy}
     WHERE uid = ${uid} AND release_time = ''`)
}

const markList = (table: MarkTable): MadeList<Mark, { live: boolean }> => {
  return madeList({ table, columns: markColumns }, markOf, ({ live }) => (live ? [sql`t.release_time = ''`] : []))
}

/** The marks of each table; with `live` only those that hold. */
export const markLists = { holds: markList('holds'), quarantined: markList('quarantined') }

/** What the organisation has said has changed: whoever has read it before has to read it again. */
export async function raiseLaw(tx: Tx, organization: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO law_versions (organization, version) VALUES (${organization}, 1)
        ON CONFLICT (organization) DO UPDATE SET version = law_versions.version + 1`)
}

/** 0 where the organisation has never said anything; `any` tells whether somebody has. */
export async function lawVersion(reader: Reader, organization: string): Promise<{ version: number; any: boolean }> {
  const row = await reader.get<{ version: number; some: number }>(sql`
    SELECT coalesce((SELECT version FROM law_versions WHERE organization = ${organization}), 0) AS version,
           CASE WHEN EXISTS (SELECT 1 FROM law_versions) THEN 1 ELSE 0 END AS some`)
  return { version: row!.version, any: row!.some === 1 }
}

/** All that holds in an organisation. */
export async function readLaw(reader: Reader, organization: string) {
  const live = { live: true }
  return {
    rules: await ruleLists.retention_rules.below(reader, organization, {}, mostRules),
    former: await formerRules(reader, organization),
    tagRules: await ruleLists.tag_rules.below(reader, organization, {}, mostRules),
    holds: await markLists.holds.below(reader, organization, live, mostMarks),
    quarantined: await markLists.quarantined.below(reader, organization, live, mostMarks),
  }
}
