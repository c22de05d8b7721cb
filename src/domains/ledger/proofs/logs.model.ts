import { hash } from 'node:crypto'
import type { HistoryRecord } from '#domains/registry/tags/tag-history.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

// The numbers are stored; they keep their meaning for good.
/** `written` gets what happens, `suspended` waits for the operator, `ended` was followed by another one. */
export const stateNumbers = { written: 1, suspended: 2, ended: 3 } as const
export type LogState = keyof typeof stateNumbers

/** A log of an organisation; those of later generations take the place of the one before. */
export type LedgerLog = {
  id: number
  organization: string
  generation: number
  origin: string
  /** Sealed. */
  secret: Uint8Array
  state: number
  size: number
  /** The last signed note, empty before the first, its size, and when it was signed. */
  checkpoint: string
  checkpointSize: number
  checkpointTime: string
  /** The size up to which the store of the blobs may have its checkpoint. */
  storedSize: number
}

/** The name of the log's checkpoint in the store of the blobs. Logs of later generations have other origins. */
export function checkpointName(origin: string): string {
  return hash('sha256', origin, 'hex')
}

/** What is said of logs that ended, and of a key that was made. */
export const resumedLogs = kindOf<{ logs: number }>('resumed-ledger-logs')
export const aLogKey = kindOf<{ key: string }>('ledger-log-key')

export const ledgerLogType = 'registry.pinfold.dev/LedgerLog'

/**
 * A ledger with rows that wait, and whether some can be logged now; those of `afterTag` and behind wait for rows of before.
 */
export type WaitingLedger = { ledger: number; organization: string; afterTag: string | null; isReady: boolean }

/** The row of its tag before: its time, empty for none, and its entry where a log has it. */
type RowBefore = {
  before: string
  beforePath: string | null
  beforeLog: number | null
  beforeChain: string | null
  beforeSeq: number | null
  beforeEntry: string | null
}

/** A row that waits, with what it says. */
export type PendingRow = HistoryRecord & RowBefore & { ledger: number; path: string; kind: number }

/** Which row an entry stands for. */
export type OpeningRow = { ledger: number; tag: string; time: string; path: string; nonce: string; index: number }

export type EntryRow = { index: number; chain: string; seq: number; entry: string }

/** How often what waits is looked at, and a checkpoint signed of it. */
export const sequenceEveryMs = 1000

/** What the salt of a chain is made from: repos never share one, and neither do two that a tag has had one after the other. */
export function saltedBy({ ledger, path }: { ledger: number; path: string }, began: string): string {
  return `${ledger}\n${path}\n${began}`
}

/** Erased records of a ledger. `paths` are the paths at which its repository was deleted. */
export type ErasedLedger = { repoUid: string; paths: string[]; records: number }
export const anErasedLedger = kindOf<ErasedLedger>('erased ledger')
