import type { Tx } from '#db/sql.ts'

/** Hooks that other domains implement. They run in the transaction of a change. */
export type AdvisoryHooks = {
  /** Called when advisories with these uids were created, changed or deleted. `now` is the time of the change. */
  advisoriesChanged(tx: Tx, uids: readonly string[], now: string): Promise<void>
}
