// Adds queued rows to the transparency log of their organization. Only one server does this at a time, so that all entries have
// one order. Tag assignments do not wait for their entries.
import { randomBytes } from 'node:crypto'
import type { App } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { kindNumbers } from '#domains/registry/tags/tag-history.model.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { leafHash } from '#lib/tlog/merkle.ts'
import { newKeyPair, noteKey, parseNote, vkeyOf } from '#lib/tlog/notes.ts'
import {
  chainOf,
  commitmentOf,
  entryText,
  keyEntryText,
  logEntryText,
  type Opening,
  openingText,
  saltOf,
} from '#lib/tlog/tag-entry.ts'
import { appended, openTiles } from '#lib/tlog/tiles.ts'
import {
  type EntryRow,
  type LedgerLog,
  type OpeningRow,
  type PendingRow,
  saltedBy,
  stateNumbers,
  type WaitingLedger,
} from './logs.model.ts'
import * as store from './logs.store.ts'
import type { Sequencing } from './sequencing.ts'

const rowsAtOnce = 200
const ledgersAtOnce = 20
/** Number of tag histories that are examined at once, and how often the next ones are examined until one is ready. */
const ledgersLookedAt = 100
const looksAtOnce = 10
/**
 * Maximum age of assignments that are logged before other rows. It is longer than an assignment may wait for its entry. Older
 * rows are not searched.
 */
const latelyMs = 120_000
const secretBytes = 32
const nonceBytes = 16

type By = Pick<App, 'cipher' | 'clock'>

/** True if a row can be logged or a log can be signed. Checked without a transaction, which is begun only if needed. */
export async function isAnythingDue({ db, sequencing }: Pick<App, 'db' | 'sequencing'>): Promise<boolean> {
  return (
    (await nextReady(db, sequencing)).ledgers.length > 0 ||
    (await store.unsignedLogs(db, { after: 0, most: 1 })).length > 0
  )
}

/**
 * Next tag histories with rows to log, and the number after which the search continues. Skips histories that cannot be logged
 * now. The number of skipped histories is limited, so that a run stays short.
 */
async function nextReady(reader: Reader, turns: Sequencing): Promise<{ ledgers: WaitingLedger[]; after: number }> {
  for (let looks = 0; looks < looksAtOnce; looks++) {
    const began = turns.after
    const waiting = await store.waitingLedgers(reader, began, ledgersLookedAt)
    const end = waiting.length < ledgersLookedAt ? 0 : waiting.at(-1)!.ledger
    const ready = waiting.filter(({ isReady }) => isReady)
    const ledgers = ready.slice(0, ledgersAtOnce)
    if (ledgers.length > 0) return { ledgers, after: ready.length > ledgersAtOnce ? ledgers.at(-1)!.ledger : end }
    turns.after = end
    // All queued tag histories were examined.
    if (began === 0 && end === 0) break
  }
  return { ledgers: [], after: turns.after }
}

/** Logs some queued rows and returns their number. `host` is the beginning of the origins of new logs. */
export async function sequenceSome(tx: Tx, by: By & Pick<App, 'sequencing'>, host: string): Promise<number> {
  const { ledgers, after } = await nextReady(tx, by.sequencing)
  by.sequencing.after = after
  const organizations = Map.groupBy(ledgers, (ready) => ready.organization)
  let count = 0
  for (const [organization, some] of organizations) {
    // Each organization has its share of the rows, and so does each of its tag histories. So a long import does not delay others.
    const ofEach = Math.ceil(rowsAtOnce / organizations.size / some.length)
    const rows: PendingRow[] = []
    for (const ready of some) rows.push(...(await nextRows(tx, by, ready, ofEach)))
    const log = rows.length > 0 ? await findOrCreateLog(tx, by, organization, host) : undefined
    if (!log) continue
    await append(tx, by, log, rows)
    count += rows.length
  }
  return count
}

/**
 * Rows of a tag history to log next. If more rows are queued, recent assignments come before imported rows. The queued rows of
 * the same chain come before each row.
 */
async function nextRows(tx: Tx, { clock }: By, ready: WaitingLedger, most: number): Promise<PendingRow[]> {
  const rows = await store.readyRows(tx, ready, most)
  if (rows.length < most) return rows
  const since = new Date(clock().getTime() - latelyMs).toISOString()
  const moved = await store.movedTags(tx, ready, since, most)
  if (moved.length === 0) return rows
  const first = await store.readyRowsOf(tx, ready, moved, Math.ceil(most / moved.length))
  return [...first, ...rows.filter(({ tag }) => !moved.includes(tag))].slice(0, most)
}

/**
 * Current log of the organization. If there is none, creates a log that refers to the log before. Returns undefined if the last
 * log is suspended.
 */
async function findOrCreateLog(tx: Tx, by: By, organization: string, host: string): Promise<LedgerLog | undefined> {
  const last = await store.lockLog(tx, organization)
  if (last?.state === stateNumbers.written) return last
  // The log may have been suspended since it was read.
  if (last?.state === stateNumbers.suspended) return undefined
  const generation = (last?.generation ?? 0) + 1
  // Another log may have been signed that this database does not know. So the new log gets a unique name.
  const isFirst = generation === 1 && !(await store.wasRestored(tx))
  const own = isFirst ? '' : `/${generation}-${randomBytes(4).toString('hex')}`
  const origin = `${host}/ledger/${organization}${own}`
  const secret = randomBytes(secretBytes)
  const log = await store.insertLog(tx, {
    organization,
    generation,
    origin,
    secret: by.cipher.encrypt('ledger-secret', secret),
  })
  await addKey(tx, by, log)
  const former = last && parseCheckpoint(parseNote(last.checkpoint)?.text ?? '')
  const entry = logEntryText(origin, secret, former)
  await addLeaves(tx, log, [{ index: 0, chain: 'log', seq: 0, entry }])
  return { ...log, size: 1 }
}

async function addKey(tx: Tx, { cipher, clock }: By, { id, origin }: LedgerLog): Promise<string> {
  const { publicKey, privateKey } = newKeyPair()
  const vkey = vkeyOf(noteKey(origin, 'log', publicKey))
  const createTime = clock().toISOString()
  await store.insertLogKey(tx, { vkey, log: id, privateKey: cipher.encrypt('ledger-key', privateKey), createTime })
  return vkey
}

/**
 * Gives the log a new key. The key signs from the next checkpoint on, together with the former key for the time in `logKeysNow`.
 * An entry of the log records the new key. Returns the new key, or undefined if the organization has no active log.
 */
export async function rotateLogKey(tx: Tx, by: By, organization: string): Promise<string | undefined> {
  const log = await store.lockLog(tx, organization)
  if (log?.state !== stateNumbers.written) return undefined
  const vkey = await addKey(tx, by, log)
  const seq = await store.countOwnEntries(tx, log.id)
  await addLeaves(tx, log, [{ index: log.size, chain: 'log', seq, entry: keyEntryText(vkey) }])
  return vkey
}

function openSecret({ cipher }: By, { origin, secret }: LedgerLog): Buffer {
  const plain = cipher.decrypt('ledger-secret', secret)
  if (!plain) throw new Error(`the secret of the log ${origin} is encrypted under another master key`)
  return plain
}

/** Last entry of a tag in a log. */
type Last = { time: string; path: string; chain: string; seq: number; leaf: Buffer }

/**
 * Adds entries for rows. A row continues the chain of the previous row only if the previous row is the last of its chain and has
 * the same path. Otherwise rows in between are unknown, and a new chain begins.
 */
async function append(tx: Tx, by: By, log: LedgerLog, rows: readonly PendingRow[]): Promise<void> {
  const secret = openSecret(by, log)
  const lasts = new Map<string, Last>()
  const entries: EntryRow[] = []
  const opened: OpeningRow[] = []
  const leaves: Buffer[] = []
  const nonces = randomBytes(nonceBytes * rows.length)
  for (const [i, row] of rows.entries()) {
    const { ledger, tag, path, time } = row
    const name = `${ledger}/${tag}`
    const last = lasts.get(name) ?? findLogged(log, row)
    const former = last?.time === row.before && last.path === path ? last : undefined
    const opening: Opening = {
      ...row,
      organization: log.organization,
      nonce: nonces.toString('hex', i * nonceBytes, (i + 1) * nonceBytes),
    }
    const chain = former?.chain ?? chainOf(saltOf(secret, saltedBy(row, time)), opening)
    const seq = former ? former.seq + 1 : 0
    const kind = nameOf(kindNumbers, row.kind)
    const commitment = commitmentOf(openingText(opening))
    const entry = entryText({ chain, seq, prev: former?.leaf.toString('hex') ?? '', time, kind, commitment })
    const index = log.size + i
    entries.push({ index, chain, seq, entry })
    opened.push({ ledger, tag, time, path, nonce: opening.nonce, index })
    const leaf = leafOf(entry)
    leaves.push(leaf)
    lasts.set(name, { time, path, chain, seq, leaf })
  }
  await addLeaves(tx, log, entries, leaves)
  await store.openEntries(tx, log.id, opened)
}

const leafOf = (entry: string): Buffer => leafHash(Buffer.from(entry))

/** Entry of the previous row of the tag. Returns undefined if this log does not have it. */
function findLogged({ id }: LedgerLog, row: PendingRow): Last | undefined {
  const { before, beforePath, beforeLog, beforeChain, beforeSeq, beforeEntry } = row
  if (beforeLog !== id || beforeEntry === null) return undefined
  return { time: before, path: beforePath!, chain: beforeChain!, seq: beforeSeq!, leaf: leafOf(beforeEntry) }
}

/** Adds entries to the tree of a log. `leaves` are the leaves of the entries, in order. */
async function addLeaves(
  tx: Tx,
  log: LedgerLog,
  entries: readonly EntryRow[],
  leaves = entries.map(({ entry }) => leafOf(entry)),
): Promise<void> {
  const open = await store.readTiles(tx, log.id, openTiles(log.size))
  const changed = appended(log.size, open, leaves)
  await store.insertEntries(tx, log.id, entries)
  await store.writeTiles(tx, log.id, [...changed.values()])
  await store.resizeLog(tx, log.id, log.size + entries.length)
}
