import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0021-tags-without-digest',
  // Few if any, which the registry's list of tags leaves out while it reads nothing but the names.
  up: () => [`CREATE INDEX tags_without_digest ON tags (repo_id, name) WHERE digest = ''`],
}
