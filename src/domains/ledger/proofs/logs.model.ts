import { hash } from 'node:crypto'
import type { HistoryRecord } from '#domains/registry/tags/tag-history.model.ts'
import { kindOf } from '#lib/events/event-body.ts'

// The numbers are stored and never change their meaning.
/** `written` logs get new entries, `suspended` ones wait for the operator, and `ended` ones have a successor. */
export const stateNumbers = { written: 1, suspended: 2, ended: 3 } as const
export type LogState = keyof typeof stateNumbers

/** Transparency log of an organization. A log of a later generation replaces the one before. */
export type LedgerLog = {
  id: number
  organization: string
  generation: number
  origin: string
  /** Secret for salts, sealed. */
  secret: Uint8Array
  state: number
  size: number
  /** Last signed checkpoint, its size and its time. Empty before the first. */
  checkpoint: string
  checkpointSize: number
  checkpointTime: string
  /** Largest size for which the blob store may have a checkpoint. */
  storedSize: number
}

/** Name of the checkpoint in the blob store. Logs of later generations have other origins. */
export function checkpointName(origin: string): string {
  return hash('sha256', origin, 'hex')
}

/** Bodies of events about ended logs and new log keys. */
export const resumedLogs = kindOf<{ logs: number }>('resumed-ledger-logs')
export const toLogKeyResource = kindOf<{ key: string }>('ledger-log-key')

export const ledgerLogType = 'registry.pinfold.dev/LedgerLog'

/**
 * A tag history with queued rows, and whether some can be logged now. Tags from `afterTag` on wait until older rows are queued.
 */
export type WaitingLedger = { ledger: number; organization: string; afterTag: string | null; isReady: boolean }

/** The previous row of the tag: its time, empty without one, and its entry if it is in a log. */
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

/** Row of the tag history that an entry stands for. */
export type OpeningRow = { ledger: number; tag: string; time: string; path: string; nonce: string; index: number }

export type EntryRow = { index: number; chain: string; seq: number; entry: string }

/** Interval for logging queued rows and signing checkpoints. */
export const sequenceEveryMs = 1000

/** Input for the salt of a chain. Two repositories never share one, and neither do a tag and an earlier tag of the same name. */
export function saltedBy({ ledger, path }: { ledger: number; path: string }, began: string): string {
  return `${ledger}\n${path}\n${began}`
}

/** Erased records of a ledger. `paths` are the paths at which its repository was deleted. */
export type ErasedLedger = { repoUid: string; paths: string[]; records: number }
export const toErasedLedgerResource = kindOf<ErasedLedger>('erased ledger')
