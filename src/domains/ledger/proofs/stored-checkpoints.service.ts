// Checkpoints in the blob store. A database that was set back does not extend them, and its logs are not signed.
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

/** A log with the root of its entries, read in the transaction that commits them. */
export type UnsignedLog = LedgerLog & { root: Buffer }

/** A stored checkpoint that may be signed; `text` is the note without signatures. */
export type StoredHead = { log: LedgerLog; text: string }

/** `waiting`: the store did not accept it now. `contradicted`: the stored text, which the log does not extend. */
type Outcome = StoredHead | 'waiting' | { contradicted: string }

/** Failure of the blob store, not of the database. */
class StoreFailure extends Error {
  override name = 'StoreFailure'
}

/** Each may use a database connection for a moment. */
const atOnce = 4
/** Another server can be faster only while it takes over the lease. */
const mostTries = 4
const logsAtOnce = 100
const rowLocks = { isolation: 'rowLocks' } as const

/** Root of the first `size` entries, which the database must have. */
export async function rootOf(reader: Reader, log: number, size: number): Promise<Buffer> {
  return rootHash(size, nodesOf(await readTiles(reader, log, tilesFor([], size))))
}

/** Reason why the log in the database does not extend a stored checkpoint. Returns undefined if it does. */
export async function contradictionOf(
  reader: Reader,
  { id, origin }: Pick<LedgerLog, 'id' | 'origin'>,
  stored: string,
): Promise<string | undefined> {
  const head = parseCheckpoint(stored)
  if (!head || head.origin !== origin) return 'the stored checkpoint is damaged'
  // Read after the stored checkpoint, which is written only after its entries are committed.
  const size = await store.sizeOf(reader, id)
  if (head.size > size) return `the database has ${size} entries, but the stored checkpoint has ${head.size}`
  const isSame = (await rootOf(reader, id, head.size)).equals(head.root)
  return isSame ? undefined : `the first ${head.size} entries differ from those of the stored checkpoint`
}

/**
 * One run of signing. After `deadline` it sends no more requests to the store. `hasStored` is true if the store has accepted
 * checkpoints in this run.
 */
type Run = { tx: Db['tx']; signal: AbortSignal; deadline: AbortSignal; hasStored: boolean }

/**
 * Stores the checkpoints of these logs and returns those that may be signed. Suspends logs that do not extend their stored
 * checkpoint. Stops at the first failure of the store and at the deadline. The run then has to end, and the next one tries again.
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
      // The checkpoint is there since a crash, or another server has stored one that extends it.
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

/** Stores the text of the signed checkpoint. Returns false if a server that signs meanwhile has stored a newer one. */
export async function storeSigned(
  checkpoints: CheckpointStore,
  { origin, checkpoint }: LedgerLog,
  signal?: AbortSignal,
): Promise<boolean> {
  const { text } = parseNote(checkpoint)!
  return (await checkpoints.write(checkpointName(origin), text, undefined, signal)) !== undefined
}

/** A folder on a network file system may never answer, and cannot be canceled by a signal. */
async function withStore<T>(within: AbortSignal, ask: () => Promise<T>): Promise<T> {
  try {
    within.throwIfAborted()
    return await unlessAborted(ask(), within)
  } catch (cause) {
    throw new StoreFailure('the blob store failed', { cause })
  }
}

/**
 * Compares the logs with their stored checkpoints, and suspends those that do not extend them. Returns `undefined` if not all
 * could be compared, since the store is unavailable or a database server lags.
 */
export async function compareCheckpoints(
  by: By,
  { tx, signal, check }: { tx: Db['tx']; signal: AbortSignal; check(): void },
): Promise<{ compared: number; suspended: number } | undefined> {
  let [compared, suspended, refuted] = [0, 0, 0]
  const { checkpoints } = by.blobs
  const compare = async (log: LedgerLog): Promise<void> => {
    const stored = await withStore(signal, () => checkpoints.read(checkpointName(log.origin), signal))
    // An earlier release has signed the log, and no entry was added since.
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
 * Decides again in the transaction that suspends the log. Any other read may come from a standby that lags, and only a primary
 * can lock the row. Returns `refuted` if the log extends its stored checkpoint there.
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
 * Skips a log that always fails, for example because of a damaged tile or key, so that it does not block others. Throws errors
 * that would concern all logs.
 */
export function passOver({ failures }: Pick<App, 'failures'>, { id }: LedgerLog, error: unknown): undefined {
  // Errors of the database have a code.
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
  if (!guard.isToldOfBucket) {
    log.warn('the bucket ignores conditions of writes, so two servers that sign at the same time are not detected')
  }
  guard.isToldOfBucket = true
}
