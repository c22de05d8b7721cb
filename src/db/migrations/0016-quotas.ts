import type { Migration } from '../migrate.ts'

// Storage that each organization uses. The first 40 characters of a uid are its organization.
export const migration: Migration = {
  id: '0016-quotas',
  up: (t) => [
    // A blob counts once for an organization, even if several of its repos have it. `links` is the number of these repos.
    `CREATE TABLE organization_blobs (
       org_uid ${t.text} NOT NULL,
       digest  ${t.text} NOT NULL,
       links   ${t.int} NOT NULL,
       PRIMARY KEY (org_uid, digest)
     )${t.withoutRowid}`,
    `INSERT INTO organization_blobs (org_uid, digest, links)
     SELECT substr(r.uid, 1, 40), b.digest, count(*) FROM repo_blobs b JOIN repos r ON r.id = b.repo_id GROUP BY 1, 2`,

    // As in list_counts every connection adds to a row of its own, except where an upload begins: that is row -1.
    `CREATE TABLE organization_usage (
       org_uid      ${t.text} NOT NULL,
       shard        ${t.int} NOT NULL,
       bytes        ${t.int} NOT NULL,
       uploads      ${t.int} NOT NULL,
       upload_bytes ${t.int} NOT NULL,
       PRIMARY KEY (org_uid, shard)
     )${t.withoutRowid}`,
    `INSERT INTO organization_usage (org_uid, shard, bytes, uploads, upload_bytes)
     SELECT org_uid, 0, sum(bytes), sum(uploads), sum(upload_bytes) FROM (
       SELECT o.org_uid, b.size AS bytes, 0 AS uploads, 0 AS upload_bytes
         FROM organization_blobs o JOIN blobs b ON b.digest = o.digest
        UNION ALL
       SELECT substr(r.uid, 1, 40), m.size, 0, 0 FROM manifests m JOIN repos r ON r.id = m.repo_id
        UNION ALL
       SELECT substr(r.uid, 1, 40), 0, 1, u.size FROM uploads u JOIN repos r ON r.id = u.repo_id
     ) AS used GROUP BY org_uid`,

    `ALTER TABLE uploads ADD COLUMN parts ${t.int} NOT NULL DEFAULT 0`,
    `UPDATE uploads SET parts = (SELECT count(*) FROM upload_parts p WHERE p.upload_uid = uploads.uid)`,

    // A whole sink may be longer than an entry of an index.
    `CREATE INDEX subscriptions_by_sink ON subscriptions (substr(sink, 1, 200), uid)`,
  ],
}
