import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0154-expand-list-ecosystems',
  // Finds the distinct ecosystems of all package lists.
  up: () => [`CREATE INDEX component_lists_by_ecosystems ON component_lists (ecosystems)`],
}
