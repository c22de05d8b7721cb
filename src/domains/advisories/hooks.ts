import type { Tx } from '#db/sql.ts'

/** Hooks that run in the transaction of a change. */
export type AdvisoryHooks = {
  /** Advisories with these uids were created, changed or deleted. `now` is the time of the cause. */
  advisoriesChanged(tx: Tx, uids: readonly string[], now: string): Promise<void>
}
