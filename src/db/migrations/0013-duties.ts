import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0013-duties',
  up: (t) => [
    // The lease of each duty that one node at a time may run, and the last run that did something or failed. A lease is
    // abandoned when `beat` stands still; each take-over raises `fence`, and what the owner writes names its fence.
    `CREATE TABLE duties (
       name       ${t.text} PRIMARY KEY,
       owner      ${t.text} NOT NULL,
       beat       ${t.int} NOT NULL,
       fence      ${t.int} NOT NULL,
       run_start  ${t.text} NOT NULL DEFAULT '',
       run_end    ${t.text} NOT NULL DEFAULT '',
       run_result ${t.text} NOT NULL DEFAULT '',
       run_status ${t.text} NOT NULL DEFAULT ''
     )${t.withoutRowid}`,
    // The servers that use this database. Times are the database's.
    `CREATE TABLE nodes (
       id              ${t.text} PRIMARY KEY,
       version         ${t.text} NOT NULL,
       url             ${t.text} NOT NULL,
       local_url       ${t.text} NOT NULL,
       start_time      ${t.text} NOT NULL,
       beat_time       ${t.text} NOT NULL,
       beat            ${t.int} NOT NULL,
       clock_offset_ms ${t.int} NOT NULL
     )${t.withoutRowid}`,
    // Collections of blobs that were asked for. States: 0 waiting, 1 running, 2 done, 3 failed.
    `CREATE TABLE collections (
       id           ${t.text} PRIMARY KEY,
       dry_run      ${t.bool} NOT NULL,
       state        ${t.int} NOT NULL DEFAULT 0,
       node         ${t.text} NOT NULL DEFAULT '',
       fence        ${t.int} NOT NULL DEFAULT 0,
       request_time ${t.text} NOT NULL,
       start_time   ${t.text} NOT NULL DEFAULT '',
       end_time     ${t.text} NOT NULL DEFAULT '',
       problem      ${t.text} NOT NULL DEFAULT '',
       links        ${t.int} NOT NULL DEFAULT 0,
       blobs        ${t.int} NOT NULL DEFAULT 0,
       bytes        ${t.int} NOT NULL DEFAULT 0,
       uploads      ${t.int} NOT NULL DEFAULT 0,
       files        ${t.int} NOT NULL DEFAULT 0,
       file_bytes   ${t.int} NOT NULL DEFAULT 0
     )${t.withoutRowid}`,
    `CREATE INDEX collections_open ON collections (request_time, id) WHERE state < 2`,
    `CREATE INDEX collections_by_time ON collections (request_time, id)`,
    // The server that reads the image. The due time is now only the time of the next attempt. Every change of the owner
    // raises `fence`.
    `ALTER TABLE image_reads ADD COLUMN owner ${t.text} NOT NULL DEFAULT ''`,
    `ALTER TABLE image_reads ADD COLUMN fence ${t.int} NOT NULL DEFAULT 0`,
    `DROP INDEX image_reads_by_due_time`,
    `CREATE INDEX image_reads_by_owner ON image_reads (owner, due_time, repo_id, digest)`,
  ],
}
