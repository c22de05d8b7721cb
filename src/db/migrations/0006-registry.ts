import type { Migration } from '../migrate.ts'

// Inside the registry a repo is named by its number, since its uid would be repeated in every row.
export const migration: Migration = {
  id: '0006-registry',
  up: (t) => [
    // One row for each content; `location` is where the store keeps it, and no two rows ever share one.
    `CREATE TABLE blobs (
       digest      ${t.text} PRIMARY KEY,
       size        ${t.int} NOT NULL,
       location    ${t.text} NOT NULL UNIQUE,
       create_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
    // A repo serves only the blobs that it has. `touch_time` is when a push last relied on it.
    `CREATE TABLE repo_blobs (
       repo_id    ${t.int} NOT NULL REFERENCES repos (id),
       digest     ${t.text} NOT NULL REFERENCES blobs (digest),
       touch_time ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest)
     )${t.withoutRowid}`,
    `CREATE INDEX repo_blobs_by_digest ON repo_blobs (digest, repo_id)`,
    `CREATE TABLE uploads (
       uid         ${t.text} PRIMARY KEY,
       repo_id     ${t.int} NOT NULL REFERENCES repos (id),
       size        ${t.int} NOT NULL,
       create_time ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL
     )${t.withoutRowid}`,
    `CREATE INDEX uploads_by_repo ON uploads (repo_id, uid)`,
    `CREATE INDEX uploads_by_update_time ON uploads (update_time, uid)`,
    // Each request that sends a piece writes a file of its own, and the first to commit wins.
    `CREATE TABLE upload_parts (
       upload_uid ${t.text} NOT NULL REFERENCES uploads (uid),
       start      ${t.int} NOT NULL,
       size       ${t.int} NOT NULL,
       location   ${t.text} NOT NULL UNIQUE,
       digest     ${t.text} NOT NULL,
       PRIMARY KEY (upload_uid, start)
     )${t.withoutRowid}`,

    `CREATE TABLE manifests (
       id            ${t.id},
       repo_id       ${t.int} NOT NULL REFERENCES repos (id),
       digest        ${t.text} NOT NULL,
       media_type    ${t.text} NOT NULL,
       artifact_type ${t.text} NOT NULL,
       subject       ${t.text} NOT NULL,
       size          ${t.int} NOT NULL,
       annotations   ${t.text} NOT NULL,
       create_time   ${t.text} NOT NULL,
       content       ${t.bytes} NOT NULL,
       UNIQUE (repo_id, digest)
     )${t.strict}`,
    `CREATE INDEX manifests_by_subject ON manifests (repo_id, subject, digest) WHERE subject <> ''`,
    `CREATE INDEX manifests_by_artifact_type ON manifests (repo_id, subject, artifact_type, digest) WHERE subject <> ''`,
    // Content that a manifest needs in its repo: blobs (kind 0) and, for an index, manifests (kind 1).
    `CREATE TABLE manifest_links (
       repo_id  ${t.int} NOT NULL REFERENCES repos (id),
       digest   ${t.text} NOT NULL,
       manifest ${t.text} NOT NULL,
       kind     ${t.int} NOT NULL,
       PRIMARY KEY (repo_id, digest, manifest)
     )${t.withoutRowid}`,
    `CREATE INDEX manifest_links_by_manifest ON manifest_links (repo_id, manifest, digest)`,

    // `shape` is the kind of name, which lists hide by; `assign_time` is when the tag took its digest.
    `CREATE TABLE tags (
       id          ${t.id},
       uid         ${t.text} NOT NULL UNIQUE,
       repo_id     ${t.int} NOT NULL REFERENCES repos (id),
       name        ${t.text} NOT NULL,
       digest      ${t.text} NOT NULL,
       shape       ${t.int} NOT NULL,
       deprecated  ${t.bool} NOT NULL,
       bundles     ${t.text} NOT NULL,
       create_time ${t.text} NOT NULL,
       update_time ${t.text} NOT NULL,
       assign_time ${t.text} NOT NULL,
       UNIQUE (repo_id, name)
     )${t.strict}`,
    `CREATE INDEX tags_by_shape ON tags (shape, uid)`,
    `CREATE INDEX tags_by_name ON tags (name, uid)`,
    `CREATE INDEX tags_by_digest ON tags (digest, uid)`,

    // The ledger: one row for every assignment, move and deletion of every tag. Rows are added and never changed. Media
    // type and size are those of the manifest at that time, since it may be gone when the row is read.
    `CREATE TABLE tag_history (
       repo_id         ${t.int} NOT NULL REFERENCES repos (id),
       tag             ${t.text} NOT NULL,
       time            ${t.text} NOT NULL,
       event           ${t.int} NOT NULL,
       digest          ${t.text} NOT NULL,
       previous_digest ${t.text} NOT NULL,
       media_type      ${t.text} NOT NULL,
       size            ${t.int} NOT NULL,
       actor           ${t.text} NOT NULL,
       source          ${t.int} NOT NULL,
       PRIMARY KEY (repo_id, tag, time)
     )${t.withoutRowid}`,
    `CREATE INDEX tag_history_by_digest ON tag_history (repo_id, digest, tag, time)`,
  ],
}
