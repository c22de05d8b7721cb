// Steps that are necessary after a database was restored, before a server starts on it.
import type { Blobs } from '#blobs/blobs.ts'
import { openBlobs } from '#blobs/open.ts'
import type { Config } from '#config.ts'
import { readFact, writeFact } from '#db/facts.ts'
import { createSkew } from '#db/skew.ts'
import type { Db, Tx } from '#db/sql.ts'
import { endLogs } from '#domains/ledger/proofs/logs.store.ts'
import type { AuditEntry } from '#domains/outbox/audit.model.ts'
import { insertEntry } from '#domains/outbox/audit.store.ts'
import { trashMs } from '#domains/registry/blobs/collection.model.ts'
import { delayAllTrash, releaseAll } from '#domains/registry/blobs/locations.store.ts'
import { type Cause, ownCause } from '#lib/cause.ts'
import { newUid, operatorUid, top } from '#lib/uid.ts'
import { openExisting } from '#open-database.ts'
import { type Forgotten, forgetRestored } from './restored-rows.store.ts'

export type Restored = Forgotten & { trash: number }

/** Audit log entry of the restore. It is not sent as an event, since subscribers may have changed since the backup. */
const auditType = 'restored'

/** Opens the restored database, and the blob store that the settings name. */
export async function openRestored(config: Config) {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (open) => open.close())
  const blobs = opening.adopt(await openBlobs(config.blobs, config.data, { env: config.aws }), (one) => one.close())
  const opened = opening.move()
  return { db, blobs, close: () => opened.disposeAsync() }
}

/**
 * Runs all steps of `complete-restore` in a transaction during which no server runs. Throws if the blob store belongs to another
 * database.
 */
export async function completeRestore(
  { db, blobs }: { db: Db; blobs: Blobs },
  { config, pushTokens }: { config: Config; pushTokens: boolean },
  inTx: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>,
): Promise<Restored> {
  const skew = createSkew(db)
  await skew.measure()
  const now = skew.now().toISOString()
  const due = new Date(skew.now().getTime() + trashMs(config)).toISOString()
  const [id, owner] = (await blobs.readId())?.split(' ') ?? []
  return inTx(async (tx) => {
    if (id === undefined || owner !== (await readFact(tx, 'database_id'))) {
      throw new Error(
        'the blob store does not belong to this database or to a backup of it; set --blobs to the store that does',
      )
    }
    await writeFact(tx, 'blob_folder_id', id)
    await releaseAll(tx)
    const trash = await delayAllTrash(tx, due)
    await endLogs(tx, 'every')
    const restored = { ...(await forgetRestored(tx, { now, pushTokens })), trash }
    await insertEntry(
      tx,
      entryOf(
        restored,
        ownCause(() => new Date(now), operatorUid),
      ),
    )
    return restored
  })
}

function entryOf(restored: Restored, { actor, now, userAgent, requestId }: Cause): AuditEntry {
  return {
    uid: newUid(top),
    type: auditType,
    subject: '',
    actor,
    act: '',
    remoteAddress: '',
    userAgent,
    requestId,
    bodyType: 'google.protobuf.Struct',
    body: JSON.stringify(restored),
    names: '',
    former: '',
    createTime: now,
  }
}
