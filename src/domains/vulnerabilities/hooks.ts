import type { Tx } from '#db/sql.ts'

/** What higher domains do in the transaction that changes something of this one. */
export type VulnerabilityHooks = {
  /** Advisories of these uids were created, changed or deleted. `now` is the time of the cause. */
  advisoriesChanged(tx: Tx, uids: readonly string[], now: string): Promise<void>
}
