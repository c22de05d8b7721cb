// The numbers are stored, and are those of the contract.
export const syncStates = { unknown: 0, queued: 1, inProgress: 2, failed: 3 } as const
export type SyncState = (typeof syncStates)[keyof typeof syncStates]

/** State of the copy of a repository, and the time of its last change. */
export type SyncStatus = { repo: string; state: SyncState; since: string }
