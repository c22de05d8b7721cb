import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0048-catalog',
  // Groups as the paths below them sort: `a-b` before `a/c`, since a slash comes after a dash and a dot.
  up: () => [`CREATE INDEX groups_by_path ON groups (parent_uid, (name || '/'))`],
}
