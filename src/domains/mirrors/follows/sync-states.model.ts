// The numbers are stored, and they are the enum numbers of the API.
export const syncStates = { unknown: 0, queued: 1, inProgress: 2, failed: 3 } as const
export type SyncState = (typeof syncStates)[keyof typeof syncStates]

/** State of a copied repository or a mirror, and the time of its last change. */
export type SyncStatus = { repo: string; state: SyncState; since: string }
