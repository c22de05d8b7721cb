import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0127-expand-scanning-weights',
  up: (t) => [
    // Organization that a list of packages is charged to, the size of its packages in bytes, and the size that is charged
    // with its findings. Earlier lists are charged to nobody.
    `ALTER TABLE component_lists ADD COLUMN payer ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE component_lists ADD COLUMN bytes ${t.int} NOT NULL DEFAULT 0`,
    `ALTER TABLE component_lists ADD COLUMN charged ${t.int} NOT NULL DEFAULT 0`,
    `CREATE INDEX component_lists_by_payer ON component_lists (payer, id) WHERE payer <> ''`,
    // Findings of each organization's own advisories in a package, apart from those of other organizations.
    `CREATE INDEX findings_by_place ON findings (component_id, place, affected_id) WHERE gone_time = ''`,
    `CREATE INDEX findings_to_take_back_by_place ON findings (component_id, place) WHERE told = 1 AND gone_time <> ''`,
    // Resolved vulnerabilities of lists that were not known completely at that time, to report once they are.
    `CREATE TABLE resolved_later (
       list_id       ${t.int} NOT NULL,
       vulnerability ${t.text} NOT NULL,
       place         ${t.text} NOT NULL,
       last_repo     ${t.int} NOT NULL DEFAULT 0,
       PRIMARY KEY (list_id, vulnerability, place)
     )${t.withoutRowid}`,
  ],
}
