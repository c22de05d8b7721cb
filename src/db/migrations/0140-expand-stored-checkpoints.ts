import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0140-expand-stored-checkpoints',
  up: (t) => [
    // The size up to which the store of the blobs may have a checkpoint of the log; 0 for a log that an earlier release signed.
    `ALTER TABLE ledger_logs ADD COLUMN stored_size ${t.int} NOT NULL DEFAULT 0`,
    // Logs that are suspended are counted every few seconds.
    `CREATE INDEX ledger_logs_suspended ON ledger_logs (org_uid) WHERE state = 2`,
  ],
}
