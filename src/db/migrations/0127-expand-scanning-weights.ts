import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0127-expand-scanning-weights',
  up: (t) => [
    // Which organisation a list of packages counts for, how many bytes its packages are, and how many are counted with what
    // is found in them. Lists of before count for nobody.
    `ALTER TABLE component_lists ADD COLUMN payer ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE component_lists ADD COLUMN bytes ${t.int} NOT NULL DEFAULT 0`,
    `ALTER TABLE component_lists ADD COLUMN charged ${t.int} NOT NULL DEFAULT 0`,
    `CREATE INDEX component_lists_by_payer ON component_lists (payer, id) WHERE payer <> ''`,
    // What each organisation finds in a package by its own advisories, apart from what others find there by theirs.
    `CREATE INDEX findings_by_place ON findings (component_id, place, affected_id) WHERE gone_time = ''`,
    `CREATE INDEX findings_to_take_back_by_place ON findings (component_id, place) WHERE told = 1 AND gone_time <> ''`,
    // What was resolved in lists of which not all was kept just then, to be told once all is.
    `CREATE TABLE resolved_later (
       list_id       ${t.int} NOT NULL,
       vulnerability ${t.text} NOT NULL,
       place         ${t.text} NOT NULL,
       last_repo     ${t.int} NOT NULL DEFAULT 0,
       PRIMARY KEY (list_id, vulnerability, place)
     )${t.withoutRowid}`,
  ],
}
