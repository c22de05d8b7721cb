// Checkpoints in the blob store. If a database was set back to an earlier state, its logs do not extend their stored checkpoints.
// Such logs are not signed.
import type { App } from '#app.ts'
import type { CheckpointStore } from '#blobs/blobs.ts'
import type { Db, Reader } from '#db/sql.ts'
import { eachAtOnce } from '#lib/scheduling/each-at-once.ts'
import { unlessAborted } from '#lib/scheduling/unless-aborted.ts'
import { checkpointText, parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { rootHash } from '#lib/tlog/merkle.ts'
import { parseNote } from '#lib/tlog/notes.ts'
import { nodesOf, tilesFor } from '#lib/tlog/tiles.ts'
import { checkpointName, type LedgerLog } from './logs.model.ts'
import { readTiles } from './logs.store.ts'
import * as store from './stored-checkpoints.store.ts'

type By = Pick<App, 'db' | 'blobs' | 'checkpointGuard' | 'log'>
type Signing = By & Pick<App, 'failures'>

/** A log with the root hash of its entries, read in the transaction that commits the entries. */
export type UnsignedLog = LedgerLog & { root: Buffer }

/** A stored checkpoint that may be signed. `text` is the note without signatures. */
export type StoredHead = { log: LedgerLog; text: string }

/**
 * Result of storing a checkpoint. `waiting`: the store did not accept the checkpoint now. `contradicted`: the log does not extend
 * this stored text.
 */
type Outcome = StoredHead | 'waiting' | { contradicted: string }

/** Error of the blob store, in contrast to errors of the database. */
class StoreFailure extends Error {
  override name = 'StoreFailure'
}

/** Number of checkpoints that are stored at the same time. Each may use a database connection for a moment. */
const atOnce = 4
/** Most attempts to store a checkpoint. Another server can store one first only while it takes over the lease. */
const mostTries = 4
const logsAtOnce = 100
const rowLocks = { isolation: 'rowLocks' } as const

/** Root hash of the first `size` entries. The database must have these entries. */
export async function rootOf(reader: Reader, log: number, size: number): Promise<Buffer> {
  return rootHash(size, nodesOf(await readTiles(reader, log, tilesFor([], size))))
}

/** Reason why the log in the database does not extend a stored checkpoint. Returns undefined if it does extend it. */
export async function contradictionOf(
  reader: Reader,
  { id, origin }: Pick<LedgerLog, 'id' | 'origin'>,
  stored: string,
): Promise<string | undefined> {
  const head = parseCheckpoint(stored)
  if (!head || head.origin !== origin) return 'the stored checkpoint is damaged'
  // The size is read after the stored checkpoint. A checkpoint is stored only after its entries are committed.
  const size = await store.sizeOf(reader, id)
  if (head.size > size) return `the database has ${size} entries, but the stored checkpoint has ${head.size}`
  const isSame = (await rootOf(reader, id, head.size)).equals(head.root)
  return isSame ? undefined : `the first ${head.size} entries differ from those of the stored checkpoint`
}

/**
 * One signing run. After `deadline` the run sends no more requests to the store. `hasStored` is true if the store has accepted
 * checkpoints in this run.
 */
type Run = { tx: Db['tx']; signal: AbortSignal; deadline: AbortSignal; hasStored: boolean }

/**
 * Stores the checkpoints of these logs and returns the checkpoints that may be signed. Suspends logs that do not extend their
 * stored checkpoint. Stops at the first failure of the store, and at the deadline. Then the run has to end, and the next run
 * tries again.
 */
export async function storeCheckpoints(
  by: Signing,
  run: Run,
  logs: readonly UnsignedLog[],
): Promise<{ stored: StoredHead[]; isWaiting: boolean }> {
  const stored: StoredHead[] = []
  let isWaiting = false
  await eachAtOnce(atOnce, logs, async (log) => {
    if (isWaiting) return
    const outcome = await storeOne(by, log, run).catch((error: unknown): Outcome | undefined => {
      run.signal.throwIfAborted()
      if (!(error instanceof StoreFailure)) return passOver(by, log, error)
      const isOnlySlow = run.deadline.aborted && (run.hasStored || stored.length > 0)
      return isOnlySlow ? 'waiting' : waitForStore(by, error.cause)
    })
    if (outcome === undefined) return
    if (outcome === 'waiting') isWaiting = true
    else if ('text' in outcome) stored.push(outcome)
    else if ((await suspend(by, run.tx, log, outcome.contradicted)) === 'refuted') isWaiting = true
  })
  if (!isWaiting && stored.length > 0) resumeSigning(by)
  return { stored, isWaiting }
}

async function storeOne(by: By, log: UnsignedLog, { signal, deadline }: Run): Promise<Outcome> {
  const { db, checkpointGuard: guard } = by
  const { checkpoints } = by.blobs
  const { origin, size, root } = log
  const head = { log, text: checkpointText({ origin, size, root }) }
  const name = checkpointName(origin)
  const within = AbortSignal.any([signal, deadline])
  let known = guard.known.get(name)
  for (let tried = 0; tried < mostTries; tried++) {
    known ??= await withStore(within, () => checkpoints.read(name, within))
    if (known) {
      if ((await contradictionOf(db, log, known.text)) !== undefined) return { contradicted: known.text }
      // The checkpoint is stored already: before a crash, or by another server. That server may also have stored a checkpoint
      // that extends this one.
      if (parseCheckpoint(known.text)!.size >= size) return head
    }
    const version = await withStore(within, () => checkpoints.write(name, head.text, known?.version, within))
    if (!checkpoints.isAtomic()) warnAboutBucket(by)
    if (version !== undefined) {
      if (!known && log.storedSize > 0 && log.checkpointSize > 0) warnAboutLoss(by, log)
      guard.known.set(name, { text: head.text, version })
      return head
    }
    known = undefined
    guard.known.delete(name)
  }
  return 'waiting'
}

/** Stores the text of the signed checkpoint. Returns false if another server has stored a newer checkpoint meanwhile. */
export async function storeSigned(
  checkpoints: CheckpointStore,
  { origin, checkpoint }: LedgerLog,
  signal?: AbortSignal,
): Promise<boolean> {
  const { text } = parseNote(checkpoint)!
  return (await checkpoints.write(checkpointName(origin), text, undefined, signal)) !== undefined
}

/**
 * Runs an operation of the store, but stops waiting when `within` is aborted. A folder on a network file system may never answer,
 * and its operations cannot be canceled.
 */
async function withStore<T>(within: AbortSignal, ask: () => Promise<T>): Promise<T> {
  try {
    within.throwIfAborted()
    return await unlessAborted(ask(), within)
  } catch (cause) {
    throw new StoreFailure('the blob store failed', { cause })
  }
}

/**
 * Compares the logs with their stored checkpoints, and suspends logs that do not extend them. Returns `undefined` if not all logs
 * could be compared, because the store is unavailable or a standby of the database lags.
 */
export async function compareCheckpoints(
  by: By,
  { tx, signal, check }: { tx: Db['tx']; signal: AbortSignal; check(): void },
): Promise<{ compared: number; suspended: number } | undefined> {
  let [compared, suspended, refuted] = [0, 0, 0]
  const { checkpoints } = by.blobs
  const compare = async (log: LedgerLog): Promise<void> => {
    const stored = await withStore(signal, () => checkpoints.read(checkpointName(log.origin), signal))
    // No checkpoint is stored, because an earlier release signed the log and no entry was added since.
    if (!stored && log.checkpoint !== '') {
      const isNew = await withStore(signal, () => storeSigned(checkpoints, log, signal))
      if (!checkpoints.isAtomic()) warnAboutBucket(by)
      if (log.storedSize === 0) await tx((one) => store.noteStored(one, [log.id]), rowLocks)
      else if (isNew) warnAboutLoss(by, log)
    }
    if (stored && (await contradictionOf(by.db, log, stored.text)) !== undefined) {
      const decided = await suspend(by, tx, log, stored.text)
      if (decided === 'new') suspended++
      if (decided === 'refuted') refuted++
    }
    compared++
  }
  try {
    for (let after = 0; ; ) {
      check()
      const logs = await store.storedLogs(by.db, after, logsAtOnce)
      await eachAtOnce(atOnce, logs, compare)
      if (logs.length < logsAtOnce) return refuted > 0 ? undefined : { compared, suspended }
      after = logs.at(-1)!.id
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof StoreFailure)) throw error
    waitForStore(by, error.cause)
    return undefined
  }
}

/** Counts the logs whose signing is suspended, for `/readyz` and the metrics of this process. */
export async function countSuspendedLogs({ db, checkpointGuard: guard }: By): Promise<void> {
  guard.suspended = await store.countSuspended(db)
}

/**
 * Suspends a log after comparing it again in the same transaction. Other reads may come from a standby that lags, and only a
 * primary can lock the row. Returns `refuted` if the log extends its stored checkpoint after all.
 */
async function suspend(by: By, tx: Db['tx'], log: LedgerLog, stored: string): Promise<'new' | 'before' | 'refuted'> {
  const decided = await tx(async (one) => {
    if (!(await store.lockWritten(one, log.id))) return { is: 'before' } as const
    const reason = await contradictionOf(one, log, stored)
    if (reason === undefined) return { is: 'refuted' } as const
    await store.suspendLog(one, log.id)
    return { is: 'new', reason } as const
  }, rowLocks)
  const { is, reason } = decided
  if (is === 'refuted')
    by.log.debug('a transparency log was read from a database server that lags', { ledgerLog: log.id })
  if (is !== 'new') return is
  by.checkpointGuard.suspended++
  by.log.error('the database lost entries of a transparency log; run pinfold server complete-restore', {
    ledgerLog: log.id,
    origin: log.origin,
    reason,
  })
  return is
}

/**
 * Skips a log that always fails, for example because of a damaged tile or key, so that the log does not block others. Throws
 * errors that would affect all logs.
 */
export function passOver({ failures }: Pick<App, 'failures'>, { id }: LedgerLog, error: unknown): undefined {
  // Errors with a code come from the database.
  if (!(error instanceof Error) || 'code' in error) throw error
  failures.repeated('a transparency log could not be signed', new Error(`log ${id}: ${error.message}`))
}

function waitForStore({ checkpointGuard: guard, log }: By, error: unknown): 'waiting' {
  if (!guard.isWaiting) log.warn('checkpoints cannot be stored, so the signing of transparency logs waits', { error })
  guard.isWaiting = true
  return 'waiting'
}

function resumeSigning({ checkpointGuard: guard, log }: By): void {
  if (guard.isWaiting) log.info('checkpoints of transparency logs are stored and signed again')
  guard.isWaiting = false
}

function warnAboutLoss({ log: lines }: By, { id, origin }: LedgerLog): void {
  lines.warn('the stored checkpoint of a transparency log was lost and is written again', { ledgerLog: id, origin })
}

function warnAboutBucket({ checkpointGuard: guard, log }: By): void {
  if (!guard.hasWarnedOfBucket) {
    log.warn('the bucket ignores conditions of writes, so two servers that sign at the same time are not detected')
  }
  guard.hasWarnedOfBucket = true
}
