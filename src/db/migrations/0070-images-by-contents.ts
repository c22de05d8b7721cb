import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0070-images-by-contents',
  up: () => [
    // The images that have a list, page by page.
    `CREATE INDEX image_contents_by_list ON image_contents (packages, repo_id, digest) WHERE packages <> ''`,
    // Images whose contents are unknown, and lists that are not known completely.
    `CREATE INDEX image_contents_unknown ON image_contents (repo_id, digest) WHERE state <> 1`,
    `CREATE INDEX component_lists_unmatched ON component_lists (id) WHERE match_time = ''`,
    `CREATE INDEX component_lists_over_limit ON component_lists (id) WHERE over_limit = 1`,
  ],
}
