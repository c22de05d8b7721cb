import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0131-expand-more-pins',
  // What a rule of retention said until then, and no rule says any more: the dates that it gave stay. `rule` is its uid.
  up: (t) => [
    `CREATE TABLE former_rules (
       id        ${t.id},
       group_uid ${t.text} NOT NULL REFERENCES groups (uid) ON DELETE CASCADE,
       rule      ${t.text} NOT NULL,
       scope_uid ${t.text} NOT NULL,
       says      ${t.text} NOT NULL,
       end_time  ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE INDEX former_rules_by_group ON former_rules (group_uid)`,
    `CREATE INDEX former_rules_by_rule ON former_rules (rule)`,
    // Which process so many witnesses have told what they have seen of a log that a fork would have shown.
    `ALTER TABLE ledger_cosigned ADD COLUMN answered_to ${t.text} NOT NULL DEFAULT ''`,
  ],
}
