import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0024-optional-default-roles',
  // SQLite cannot take NOT NULL from a column, so another one takes its place. Providers are few.
  up: (t) => [
    `ALTER TABLE identity_providers ADD COLUMN optional_role ${t.text} REFERENCES roles (uid)`,
    `UPDATE identity_providers SET optional_role = default_role`,
    `DROP INDEX identity_providers_by_role`,
    `ALTER TABLE identity_providers DROP COLUMN default_role`,
    `ALTER TABLE identity_providers RENAME COLUMN optional_role TO default_role`,
    `CREATE INDEX identity_providers_by_role ON identity_providers (default_role, uid)`,
  ],
}
