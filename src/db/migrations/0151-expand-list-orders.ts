import type { Migration } from '../migrate.ts'

/** Columns other than the uid that lists can be sorted by, of each table. */
const sorted = {
  gates: ['name', 'create_time', 'update_time'],
  pull_rules: ['name', 'create_time', 'update_time'],
  retention_rules: ['create_time', 'update_time'],
  tag_rules: ['create_time', 'update_time'],
  retention_plans: ['create_time', 'expire_time'],
  gate_exceptions: ['create_time', 'expire_time'],
  pull_rule_exceptions: ['create_time', 'expire_time'],
  risk_acceptances: ['create_time', 'expire_time'],
  vex_signers: ['name', 'create_time', 'expire_time'],
  holds: ['create_time'],
  quarantined: ['create_time'],
}

/** Columns that the list of the mirrors of a group can be sorted by. */
const ofFollows = ['create_time', 'update_time']

export const migration: Migration = {
  id: '0151-expand-list-orders',
  up: () => [
    // The rows of each organization, and all rows, in every order of their lists.
    ...Object.entries(sorted).flatMap(([table, columns]) => {
      return columns.flatMap((column) => [
        `CREATE INDEX ${table}_${column}_inside ON ${table} (substr(uid, 1, 40), ${column}, uid)`,
        `CREATE INDEX ${table}_${column}_all ON ${table} (${column}, uid)`,
      ])
    }),
    ...ofFollows.map((column) => {
      return `CREATE INDEX follows_${column}_inside ON follows (substr(repo_uid, 1, 40), ${column}, repo_uid)`
    }),
  ],
}
