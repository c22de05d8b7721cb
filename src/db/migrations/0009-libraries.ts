import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0009-libraries',
  up: (t) => [
    `CREATE TABLE trigrams (
       kind ${t.text} NOT NULL,
       gram ${t.text} NOT NULL,
       id   ${t.int} NOT NULL,
       PRIMARY KEY (kind, gram, id)
     )${t.withoutRowid}`,
    `CREATE TABLE trigram_counts (
       kind  ${t.text} NOT NULL,
       gram  ${t.text} NOT NULL,
       shard ${t.int} NOT NULL,
       total ${t.int} NOT NULL,
       PRIMARY KEY (kind, gram, shard)
     )${t.withoutRowid}`,

    `CREATE TABLE artifacts (
       id             ${t.id},
       uid            ${t.text} NOT NULL UNIQUE,
       ecosystem      ${t.text} NOT NULL,
       name           ${t.text} NOT NULL,
       description    ${t.text} NOT NULL,
       latest_version ${t.text} NOT NULL,
       version_count  ${t.int} NOT NULL,
       places         ${t.text} NOT NULL,
       create_time    ${t.text} NOT NULL,
       update_time    ${t.text} NOT NULL
     )${t.strict}`,
    // The key is the version once more, as a text that sorts as its ecosystem orders versions.
    `CREATE TABLE artifact_versions (
       id           ${t.id},
       artifact_id  ${t.int} NOT NULL REFERENCES artifacts (id),
       sort_key     ${t.text} NOT NULL,
       version      ${t.text} NOT NULL,
       description  ${t.text} NOT NULL,
       size_bytes   ${t.int} NOT NULL,
       remediated   ${t.bool} NOT NULL,
       release_time ${t.text} NOT NULL,
       change_time  ${t.text} NOT NULL,
       first_time   ${t.text} NOT NULL,
       UNIQUE (artifact_id, sort_key, version)
     )${t.strict}`,
    `CREATE TABLE artifact_runs (
       run         ${t.text} PRIMARY KEY,
       after_name  ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
  ],
}
