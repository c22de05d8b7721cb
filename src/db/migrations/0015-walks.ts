import type { Migration } from '../migrate.ts'

const indexes = `media_type IN ('application/vnd.oci.image.index.v1+json',
                                'application/vnd.docker.distribution.manifest.list.v2+json')`

/** The indexes that list one of this many levels. */
const listing = (levels: number) => `EXISTS (
  SELECT 1 FROM manifest_links l JOIN manifests c ON c.repo_id = l.repo_id AND c.digest = l.digest
   WHERE l.repo_id = manifests.repo_id AND l.manifest = manifests.digest AND l.kind = 1 AND c.levels >= ${levels})`

export const migration: Migration = {
  id: '0015-walks',
  up: (t) => [
    // Number of index levels above an image: 0 for an image, 1 for an index of images, 2 for an index that lists such an
    // index. Earlier versions accepted more; any such depth is 3 here.
    `ALTER TABLE manifests ADD COLUMN levels ${t.int} NOT NULL DEFAULT 0`,
    `UPDATE manifests SET levels = 1 WHERE ${indexes}`,
    `UPDATE manifests SET levels = 2 WHERE levels = 1 AND ${listing(1)}`,
    `UPDATE manifests SET levels = 3 WHERE levels = 2 AND ${listing(2)}`,
    // Organization of the image, for fair scheduling between organizations.
    `ALTER TABLE image_reads ADD COLUMN organization ${t.text} NOT NULL DEFAULT ''`,
    `UPDATE image_reads SET organization = (SELECT substr(uid, 1, 40) FROM repos WHERE repos.id = image_reads.repo_id)`,
    `CREATE INDEX image_reads_by_organization ON image_reads (owner, organization, due_time, repo_id, digest)`,
  ],
}
