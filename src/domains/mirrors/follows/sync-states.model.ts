// The numbers are stored, and are those of the contract.
export const syncStates = { unknown: 0, queued: 1, inProgress: 2, failed: 3 } as const
export type SyncState = (typeof syncStates)[keyof typeof syncStates]

/** How the copying of a repo goes, and since when. */
export type SyncStatus = { repo: string; state: SyncState; since: string }
