import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0068-scanning-upkeep',
  up: (t) => [
    // Lists of packages that no image has any more go, and with them what only they had.
    `CREATE INDEX components_held ON components (id) WHERE held = 1`,
    `CREATE INDEX suppressions_by_owner ON suppressions (owner_id, id)`,
    // Packages that an image names twice were counted twice.
    `UPDATE component_lists
        SET packages = (SELECT count(*) FROM list_components l WHERE l.list_id = component_lists.id) WHERE state = 1`,
    // Former contents of an image, and the time until which they were known, for reports of past days.
    `CREATE TABLE past_contents (
       repo_id              ${t.int} NOT NULL REFERENCES repos (id),
       digest               ${t.text} NOT NULL,
       until_time           ${t.text} NOT NULL,
       state                ${t.int} NOT NULL,
       source               ${t.int} NOT NULL,
       packages             ${t.text} NOT NULL,
       distribution         ${t.text} NOT NULL,
       distribution_version ${t.text} NOT NULL,
       gaps                 ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest, until_time)
     )${t.withoutRowid}`,
    `CREATE INDEX past_contents_by_packages ON past_contents (packages, repo_id) WHERE packages <> ''`,
  ],
}
