import type { Migration } from '../migrate.ts'
import type { Words } from '../words.ts'

/**
 * Index of the tag names of a large repo by their parts. `tag_part_indexes` says which tags an index has: those up to the number
 * `up_to`, in a number of segments. An index without a repo is left over and is deleted: an earlier server deletes the repo
 * without it.
 */
export const migration: Migration = {
  id: '0133-expand-tag-parts',
  up: (t) => [
    `CREATE TABLE tag_part_indexes (
       id       ${t.counter},
       repo_id  ${t.int} REFERENCES repos (id) ON DELETE SET NULL,
       up_to    ${t.int} NOT NULL,
       segments ${t.int} NOT NULL,
       due      ${t.bool} NOT NULL
     )${t.strict}`,
    `CREATE INDEX tag_part_indexes_by_repo ON tag_part_indexes (repo_id, id)`,
    // Positions in the sorted names of a segment at which one, two or three characters occur.
    `CREATE TABLE tag_parts (
       index_id ${t.int} NOT NULL,
       gram     ${t.text} NOT NULL,
       segment  ${t.int} NOT NULL,
       held     ${t.bytes} NOT NULL,
       PRIMARY KEY (index_id, gram, segment)
     )${t.strict}`,
    // The first name of each bucket of a segment.
    `CREATE TABLE tag_part_segments (
       index_id ${t.int} NOT NULL,
       segment  ${t.int} NOT NULL,
       fences   ${t.text} NOT NULL,
       PRIMARY KEY (index_id, segment)
     )${t.strict}`,
    `CREATE TABLE tag_part_names (
       index_id ${t.int} NOT NULL,
       bucket   ${t.int} NOT NULL,
       names    ${t.text} NOT NULL,
       PRIMARY KEY (index_id, bucket)
     )${t.strict}`,
    // By expressions of its own, so that no engine ever takes it for a question about a name.
    `CREATE INDEX tags_by_number ON tags ((-repo_id), (-id))`,
    ...numbersAgain[t.engine],
  ],
}

/** SQLite gives the highest number again when its tag is gone: what has it then is new to every index. */
const numbersAgain: Record<Words['engine'], string[]> = {
  sqlite: [
    `CREATE TRIGGER tags_number_again AFTER DELETE ON tags WHEN OLD.id > coalesce((SELECT max(id) FROM tags), 0)
     BEGIN
       UPDATE tag_part_indexes SET up_to = coalesce((SELECT max(id) FROM tags), 0)
        WHERE up_to > coalesce((SELECT max(id) FROM tags), 0);
     END`,
  ],
  postgres: [],
}
