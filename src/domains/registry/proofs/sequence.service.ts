// Rows that wait get their places in the log of their organisation, and the log is signed. One node at a time does it, so that
// the places are given in one order; nobody who moves a tag waits for it.
import { randomBytes } from 'node:crypto'
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { checkpointText, parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { newKeyPair, noteKey, parseNote, parseVkey, signLine, vkeyOf } from '#lib/tlog/notes.ts'
import {
  chainOf,
  commitmentOf,
  entryText,
  logEntryText,
  type Opening,
  openingText,
  saltOf,
} from '#lib/tlog/tag-entry.ts'
import { appended, nodesOf, openTiles, tilesFor } from '#lib/tlog/tiles.ts'
import { rootOf } from '#lib/uid.ts'
import { timeAfter } from '../tags/tag-history.model.ts'
import {
  type ChainState,
  type EntryRow,
  kindNumbers,
  type LedgerLog,
  type OpeningRow,
  type PendingRow,
  stateNumbers,
} from './logs.model.ts'
import * as store from './logs.store.ts'

const rowsAtOnce = 200
const logsAtOnce = 100
const secretBytes = 32
const nonceBytes = 16

type By = Pick<App, 'sealer' | 'clock'>

/** Logs some of the rows that wait; answers with how many. `host` is what the origins of new logs begin with. */
export async function sequenceSome(tx: Tx, by: By, host: string): Promise<number> {
  const rows = await store.readyRows(tx, rowsAtOnce)
  for (const [organization, some] of Map.groupBy(rows, (row) => rootOf(row.organization))) {
    await append(tx, by, await logOf(tx, by, organization, host), some)
  }
  return rows.length
}

/** The log that is written; a new one where there is none, which names the one before. */
async function logOf(tx: Tx, { sealer, clock }: By, organization: string, host: string): Promise<LedgerLog> {
  const last = await store.findLog(tx, organization)
  if (last?.state === stateNumbers.written) return last
  const generation = (last?.generation ?? 0) + 1
  const origin = `${host}/ledger/${organization}${generation === 1 ? '' : `/${generation}`}`
  const secret = randomBytes(secretBytes)
  const log = await store.insertLog(tx, {
    organization,
    generation,
    origin,
    secret: sealer.seal('ledger-secret', secret),
  })
  const { publicKey, privateKey } = newKeyPair()
  await store.insertLogKey(tx, {
    vkey: vkeyOf(noteKey(origin, 'log', publicKey)),
    log: log.id,
    privateKey: sealer.seal('ledger-key', privateKey),
    createTime: clock().toISOString(),
  })
  const former = last && parseCheckpoint(parseNote(last.checkpoint)?.text ?? '')
  const entry = logEntryText(origin, secret, former)
  await addLeaves(tx, log, [{ index: 0, chain: 'log', seq: 0, entry }])
  return { ...log, size: 1 }
}

function openedSecret({ sealer }: By, { origin, secret }: LedgerLog): Buffer {
  const plain = sealer.unseal('ledger-secret', secret)
  if (!plain) throw new Error(`the secret of the log ${origin} was sealed under another master key`)
  return plain
}

async function append(tx: Tx, by: By, log: LedgerLog, rows: readonly PendingRow[]): Promise<void> {
  const secret = openedSecret(by, log)
  const openings = rows.map((row) => {
    const opening: Opening = { ...row, nonce: randomBytes(nonceBytes).toString('hex') }
    return { row, opening, chain: chainOf(saltOf(secret, row.path), opening) }
  })
  const known = await store.chainStates(tx, log.id, [...new Set(openings.map(({ chain }) => chain))])
  const chains = new Map(known.map((state): [string, ChainState] => [state.chain, state]))
  const entries: EntryRow[] = []
  const opened: OpeningRow[] = []
  for (const [i, { row, opening, chain }] of openings.entries()) {
    const last = chains.get(chain)
    const seq = last ? last.seq + 1 : 0
    // Times of a chain only ever grow, also where a path was that of another repo before.
    const time = timeAfter(row.time, last?.time ?? '')
    const kind = store.nameOf(kindNumbers, row.kind)
    const entry = entryText({
      chain,
      seq,
      prev: last?.leaf ?? '',
      time,
      kind,
      commitment: commitmentOf(openingText(opening)),
    })
    const index = log.size + i
    entries.push({ index, chain, seq, entry })
    opened.push({ ledger: row.ledger, tag: row.tag, time: row.time, path: row.path, nonce: opening.nonce, index })
    chains.set(chain, { chain, seq, leaf: leafHash(Buffer.from(entry)).toString('hex'), time })
  }
  await addLeaves(tx, log, entries)
  await store.writeChains(tx, log.id, [...chains.values()])
  await store.openEntries(tx, log.id, opened)
}

async function addLeaves(tx: Tx, log: LedgerLog, entries: readonly EntryRow[]): Promise<void> {
  const open = await store.readTiles(tx, log.id, openTiles(log.size))
  const changed = appended(
    log.size,
    open,
    entries.map(({ entry }) => leafHash(Buffer.from(entry))),
  )
  await store.insertEntries(tx, log.id, entries)
  await store.writeTiles(tx, log.id, [...changed.values()])
  await store.resizeLog(tx, log.id, log.size + entries.length)
}

/** Signs the logs that have grown, some of them; answers with how many. */
export async function signSome(tx: Tx, by: By): Promise<number> {
  const logs = await store.unsignedLogs(tx, logsAtOnce)
  if (logs.length === 0) return 0
  const keys = await store.logKeys(
    tx,
    logs.map(({ id }) => id),
  )
  for (const log of logs) {
    const { id, origin, size } = log
    const tiles = await store.readTiles(tx, id, tilesFor(size - 1, size))
    const text = checkpointText({ origin, size, root: rootHash(size, nodesOf(tiles)) })
    const lines = keys.filter((key) => key.log === id).map((key) => signed(by, text, key))
    const checkpoint = `${text}\n${lines.join('')}`
    await store.signLog(tx, id, { checkpoint, size, time: by.clock().toISOString() })
  }
  return logs.length
}

function signed({ sealer }: By, text: string, { vkey, privateKey }: store.LogKey): string {
  const [key, plain] = [parseVkey(vkey), sealer.unseal('ledger-key', privateKey)]
  if (!key || !plain) throw new Error(`the key ${vkey} was sealed under another master key`)
  return signLine(text, key, plain)
}
