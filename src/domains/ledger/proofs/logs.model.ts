import { hash } from 'node:crypto'
import type { HistoryRecord } from '#domains/registry/tags/tag-history.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

// The numbers are stored and never change their meaning.
/** A `written` log gets new entries. A `suspended` log gets none until the operator acts. An `ended` log has a successor. */
export const stateNumbers = { written: 1, suspended: 2, ended: 3 } as const
export type LogState = keyof typeof stateNumbers

/** Transparency log of an organization. A log of a later generation replaces the log before. */
export type LedgerLog = {
  id: number
  organization: string
  generation: number
  origin: string
  /** Secret for salts, encrypted. */
  secret: Uint8Array
  state: number
  size: number
  /** Text of the last signed checkpoint. Empty before the first one. */
  checkpoint: string
  checkpointSize: number
  checkpointTime: string
  /** Largest size of the log for which a checkpoint may be in the blob store. */
  storedSize: number
}

/** Name of the checkpoint in the blob store. Each generation of a log has its own origin, and so its own name. */
export function checkpointName(origin: string): string {
  return hash('sha256', origin, 'hex')
}

/** Bodies of events about ended logs and new log keys. */
export const resumedLogs = kindOf<{ logs: number }>('resumed-ledger-logs')
export const toLogKeyResource = kindOf<{ key: string }>('ledger-log-key')

export const ledgerLogType = 'registry.pinfold.dev/LedgerLog'

/**
 * A tag history with queued rows. `isReady` is true if some of its rows can be logged now. Rows of tags from `afterTag` on wait
 * until older rows are queued.
 */
export type WaitingLedger = { ledger: number; organization: string; afterTag: string | null; isReady: boolean }

/**
 * The previous row of the same tag. `before` is its time, or empty if there is none. The other fields have its entry, if the row
 * is in a log.
 */
type RowBefore = {
  before: string
  beforePath: string | null
  beforeLog: number | null
  beforeChain: string | null
  beforeSeq: number | null
  beforeEntry: string | null
}

/** A queued row with its content. */
export type PendingRow = HistoryRecord & RowBefore & { ledger: number; path: string; kind: number }

/** Row of the tag history for which the log has an entry. */
export type OpeningRow = { ledger: number; tag: string; time: string; path: string; nonce: string; index: number }

export type EntryRow = { index: number; chain: string; seq: number; entry: string }

/** Interval at which queued rows are logged and checkpoints are signed. */
export const sequenceEveryMs = 1000

/**
 * Input for the salt of a chain of entries. Each repository has its own input, and so does each period of a tag between creation
 * and deletion.
 */
export function saltedBy({ ledger, path }: { ledger: number; path: string }, began: string): string {
  return `${ledger}\n${path}\n${began}`
}

/** Result of erasing a tag history. `paths` are the paths at which the repository was deleted. */
export type ErasedLedger = { repoUid: string; paths: string[]; records: number }
export const toErasedLedgerResource = kindOf<ErasedLedger>('erased ledger')
