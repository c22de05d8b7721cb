import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0150-expand-images-without-packages',
  up: () => [
    // Images that were read, and in which no package was found.
    `CREATE INDEX image_contents_without_packages ON image_contents (repo_id, digest) WHERE state = 1 AND packages = ''`,
  ],
}
