import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0131-expand-more-pins',
  // Former retention policies, whose dates stay valid. `rule` is the uid of the policy.
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
    // Process that enough witnesses have answered, so that a fork of the log would have shown.
    `ALTER TABLE ledger_cosigned ADD COLUMN answered_to ${t.text} NOT NULL DEFAULT ''`,
  ],
}
