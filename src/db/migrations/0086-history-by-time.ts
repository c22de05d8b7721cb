import type { Migration } from '../migrate.ts'

/**
 * The ledger of a repo as a whole, by time. By an expression of its own, so that no engine ever takes it for a question about
 * one tag, whose rows are together under the primary key.
 */
export const migration: Migration = {
  id: '0086-history-by-time',
  up: () => [`CREATE INDEX tag_history_by_time ON tag_history ((-repo_id), time, tag)`],
}
