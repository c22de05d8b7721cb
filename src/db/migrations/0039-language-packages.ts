import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0039-language-packages',
  up: (t) => [
    // Version of the reader that has read the image, so that a better one reads it again, and the coverage gaps of the image.
    `ALTER TABLE image_contents ADD COLUMN reader ${t.int} NOT NULL DEFAULT 0`,
    `ALTER TABLE image_contents ADD COLUMN gaps ${t.text} NOT NULL DEFAULT '[]'`,
    `CREATE INDEX image_contents_by_reader ON image_contents (reader, repo_id, digest)`,
    // Images that are read again only, which give way to those that nobody has read.
    `ALTER TABLE image_reads ADD COLUMN again ${t.bool} NOT NULL DEFAULT 0`,
    `DROP INDEX image_reads_by_owner`,
    `DROP INDEX image_reads_by_organization`,
    `CREATE INDEX image_reads_by_owner ON image_reads (owner, again, due_time, repo_id, digest)`,
    `CREATE INDEX image_reads_by_organization ON image_reads (owner, again, organization, due_time, repo_id, digest)`,
    // With the statements of builders, which may have an SBOM in them.
    `DROP INDEX manifests_sboms`,
    `CREATE INDEX manifests_sboms ON manifests (repo_id, subject, id)
      WHERE artifact_type IN ('application/spdx+json', 'text/spdx+json', 'application/vnd.cyclonedx+json',
                              'application/vnd.in-toto+json')`,
  ],
}
