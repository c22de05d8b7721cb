import type { Migration } from '../migrate.ts'

/** Index for the search of names by any part, see `domains/search/parts.store.ts`. */
export const migration: Migration = {
  id: '0156-expand-search',
  up: (t) => [
    // Rows whose names a background job adds to the index, or removes from it.
    `CREATE TABLE search_queue (
       id           ${t.counter},
       source       ${t.int} NOT NULL,
       row_id       ${t.int} NOT NULL,
       organization ${t.text} NOT NULL
     )${t.strict}`,
    `CREATE TABLE search_parts (
       kind     ${t.int} NOT NULL,
       scope    ${t.int} NOT NULL,
       standing ${t.int} NOT NULL,
       part     ${t.text} NOT NULL,
       id       ${t.int} NOT NULL,
       PRIMARY KEY (kind, scope, standing, part, id)
     )${t.withoutRowid}`,
    `CREATE INDEX search_parts_by_id ON search_parts (kind, id)`,
    // Sequences of three characters that occur in a tag of the repository. A deleted tag leaves its rows behind.
    `CREATE TABLE tag_grams (
       repo_id ${t.int} NOT NULL,
       gram    ${t.text} NOT NULL,
       org_id  ${t.int} NOT NULL,
       PRIMARY KEY (repo_id, gram)
     )${t.withoutRowid}`,
    `CREATE INDEX tag_grams_by_gram ON tag_grams (org_id, gram, repo_id)`,
    // Names of the packages in images of an organization.
    `CREATE TABLE search_packages (
       id     ${t.counter},
       org_id ${t.int} NOT NULL,
       name   ${t.text} NOT NULL,
       UNIQUE (org_id, name)
     )${t.strict}`,
    // Package lists of an organization. `after_id` is the last component whose name is indexed.
    `CREATE TABLE search_lists (
       list_id  ${t.int} NOT NULL REFERENCES component_lists (id) ON DELETE CASCADE,
       org_id   ${t.int} NOT NULL,
       after_id ${t.int} NOT NULL,
       done     ${t.bool} NOT NULL,
       PRIMARY KEY (list_id, org_id)
     )${t.withoutRowid}`,
    `CREATE INDEX search_lists_by_org ON search_lists (done, org_id, list_id)`,
    // Images by the start of their digest, in any repository.
    `CREATE INDEX manifests_by_digest ON manifests (digest, repo_id)`,
  ],
}
