import { kindOf } from '#lib/events/event-body.ts'

/** Erased records of a ledger. `paths` are the paths at which its repository was deleted. */
export type ErasedLedger = { repoUid: string; paths: string[]; records: number }
export const anErasedLedger = kindOf<ErasedLedger>('erased ledger')
