import { kindOf } from '#lib/events/event-body.ts'

/** What was erased; `paths` are those at which a repo of the ledger was deleted. */
export type ErasedLedger = { repoUid: string; paths: string[]; records: number }
export const anErasedLedger = kindOf<ErasedLedger>('erased ledger')
