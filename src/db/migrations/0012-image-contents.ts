import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0012-image-contents',
  up: (t) => [
    // Content that was found in an image, or the reason why nothing was found. It outlives the manifest, as tag history does.
    `CREATE TABLE image_contents (
       repo_id              ${t.int} NOT NULL REFERENCES repos (id),
       digest               ${t.text} NOT NULL,
       state                ${t.int} NOT NULL,
       source               ${t.int} NOT NULL,
       packages             ${t.text} NOT NULL,
       distribution         ${t.text} NOT NULL,
       distribution_version ${t.text} NOT NULL,
       reason               ${t.text} NOT NULL,
       message              ${t.text} NOT NULL,
       read_time            ${t.text} NOT NULL,
       PRIMARY KEY (repo_id, digest)
     )${t.withoutRowid}`,
    `CREATE INDEX image_contents_by_packages ON image_contents (packages, repo_id) WHERE packages <> ''`,
    // Lists of packages by their hash: images that are built again often contain the same.
    `CREATE TABLE package_lists (
       hash     ${t.text} PRIMARY KEY,
       packages ${t.text} NOT NULL
     )${t.withoutRowid}`,
    // Images that wait to be read. A reader moves the due time on, so that no other one reads the image meanwhile.
    `CREATE TABLE image_reads (
       repo_id  ${t.int} NOT NULL REFERENCES repos (id),
       digest   ${t.text} NOT NULL,
       due_time ${t.text} NOT NULL,
       attempts ${t.int} NOT NULL,
       PRIMARY KEY (repo_id, digest)
     )${t.withoutRowid}`,
    `CREATE INDEX image_reads_by_due_time ON image_reads (due_time, repo_id, digest)`,
    // The SBOMs of an image, however many other manifests refer to it.
    `CREATE INDEX manifests_sboms ON manifests (repo_id, subject, id)
      WHERE artifact_type IN ('application/spdx+json', 'text/spdx+json', 'application/vnd.cyclonedx+json')`,
    // Manifests that were pushed before there was a queue.
    `INSERT INTO image_reads (repo_id, digest, due_time, attempts)
     SELECT repo_id, digest, create_time, 0 FROM manifests
      WHERE artifact_type IN ('application/vnd.oci.image.config.v1+json', 'application/vnd.docker.container.image.v1+json')
         OR media_type IN ('application/vnd.oci.image.index.v1+json',
                           'application/vnd.docker.distribution.manifest.list.v2+json')`,
  ],
}
