// Retention rules, tag rules, holds and quarantines.
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { endingTable, ruleTable } from '#domains/rules/rules.store.ts'
import {
  type FormerRule,
  type Mark,
  mostMarks,
  mostRules,
  type RetentionRule,
  type TagRule,
} from './retention.model.ts'

const says = { members: ['says'], json: ['says'] }
export const retentionRuleTable = ruleTable<RetentionRule>({ table: 'retention_rules', ...says })
export const tagRuleTable = ruleTable<TagRule>({ table: 'tag_rules', ...says })

const markTable = (table: string) =>
  endingTable<Mark>(
    { table, members: ['digest', 'tags'], json: ['tags'] },
    { endTime: 'release_time', endActor: 'released_by' },
  )
export const holdTable = markTable('holds')
export const quarantineTable = markTable('quarantined')

/** Raises the version of the rules of an organization, so that caches read the rules again. */
export async function raiseRulesVersion(tx: Tx, organization: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO law_versions (organization, version) VALUES (${organization}, 1)
        ON CONFLICT (organization) DO UPDATE SET version = law_versions.version + 1`)
}

/**
 * Version of the rules of an organization. It is 0 if the organization never had a rule, hold or quarantine. `any` is true if any
 * organization had one.
 */
export async function rulesVersion(reader: Reader, organization: string): Promise<{ version: number; any: boolean }> {
  const row = await reader.get<{ version: number; some: number }>(sql`
    SELECT coalesce((SELECT version FROM law_versions WHERE organization = ${organization}), 0) AS version,
           CASE WHEN EXISTS (SELECT 1 FROM law_versions) THEN 1 ELSE 0 END AS some`)
  return { version: row!.version, any: row!.some === 1 }
}

/** Reads all rules, former rules, holds and quarantines of an organization. */
export async function readContentRules(reader: Reader, organization: string) {
  const live = { now: '' }
  return {
    rules: await retentionRuleTable.list.below(reader, organization, {}, mostRules),
    former: await formerRules(reader, organization),
    tagRules: await tagRuleTable.list.below(reader, organization, {}, mostRules),
    holds: await holdTable.list.below(reader, organization, live, mostMarks),
    quarantined: await quarantineTable.list.below(reader, organization, live, mostMarks),
  }
}

type Stored = FormerRule & { id: number }

/** Former rules in a scope, in the order in which they ended. */
export async function formerRules(reader: Reader, scope: string): Promise<Stored[]> {
  const rows = await reader.all<Omit<Stored, 'says'> & { says: string }>(sql`
    SELECT id, rule AS uid, scope_uid AS "scopeUid", says, end_time AS "endTime" FROM former_rules
     WHERE rule > ${scope} AND rule < ${`${scope}0`} ORDER BY id`)
  return rows.map((row) => ({ ...row, says: JSON.parse(row.says) as FormerRule['says'] }))
}

export async function insertFormerRule(tx: Tx, group: string, rule: FormerRule): Promise<void> {
  const { uid, scopeUid, says, endTime } = rule
  await tx.run(sql`
    INSERT INTO former_rules (group_uid, rule, scope_uid, says, end_time)
    VALUES (${group}, ${uid}, ${scopeUid}, ${JSON.stringify(says)}, ${endTime})`)
}

export async function deleteFormerRule(tx: Tx, id: number): Promise<void> {
  await tx.run(sql`DELETE FROM former_rules WHERE id = ${id}`)
}

/** Deletes the former rules in a scope. Returns their number. */
export async function deleteFormerRulesAt(tx: Tx, scope: string): Promise<number> {
  return tx.run(sql`DELETE FROM former_rules WHERE rule > ${scope} AND rule < ${`${scope}0`}`)
}
