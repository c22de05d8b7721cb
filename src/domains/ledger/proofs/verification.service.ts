// Compares the transparency logs with their checkpoints in the blob store.
import type { Blobs } from '#blobs/blobs.ts'
import type { Db } from '#db/sql.ts'
import type { Watch } from '#domains/registry/verification/verification.model.ts'
import { checkpointName, type LedgerLog } from './logs.model.ts'
import { contradictionOf, storeSigned } from './stored-checkpoints.service.ts'
import { storedLogs } from './stored-checkpoints.store.ts'

const page = 500

/**
 * Verifies that every log that has not ended extends its stored checkpoint. Also verifies that every signed log has a stored
 * checkpoint.
 */
export async function verifyCheckpoints(at: { db: Db; blobs: Blobs }, watch: Watch): Promise<void> {
  for (let after = 0; ; ) {
    const logs = await storedLogs(at.db, after, page)
    for (const log of logs) await verifyCheckpoint(at, log, watch)
    watch.examined('checkpoints', logs.length)
    if (logs.length < page) return
    after = logs.at(-1)!.id
  }
}

async function verifyCheckpoint(
  { db, blobs: { checkpoints } }: { db: Db; blobs: Blobs },
  log: LedgerLog,
  watch: Watch,
): Promise<void> {
  const { origin, storedSize, checkpoint } = log
  const of = { check: 'checkpoints', subject: origin } as const
  const name = checkpointName(origin)
  const stored = await checkpoints.read(name)
  if (stored) {
    const detail = await contradictionOf(db, log, stored.text)
    if (detail !== undefined) {
      watch.found({ ...of, problem: 'log does not extend its stored checkpoint', detail, repaired: false })
    }
    return
  }
  // No checkpoint is stored if an earlier release signed the log, or if the log was never signed.
  if (storedSize === 0 || checkpoint === '') return
  if (watch.repair) await storeSigned(checkpoints, log)
  const detail = 'the blob store does not have it'
  watch.found({ ...of, problem: 'stored checkpoint is missing', detail, repaired: watch.repair })
}
