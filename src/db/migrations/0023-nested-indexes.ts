import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0023-nested-indexes',
  up: (t) => [
    // Indexes that list indexes, with how many there are from the index down to an image: 2, or what was taken once, 3. They
    // change when what an index lists is pushed after it. Beside the content they would be written with all of it.
    `CREATE TABLE nested_indexes (
       repo_id ${t.int} NOT NULL,
       digest  ${t.text} NOT NULL,
       levels  ${t.int} NOT NULL,
       PRIMARY KEY (repo_id, digest)
     )${t.withoutRowid}`,
    `INSERT INTO nested_indexes (repo_id, digest, levels)
     SELECT repo_id, digest, levels FROM manifests WHERE levels > 1`,
    `ALTER TABLE manifests DROP COLUMN levels`,
  ],
}
