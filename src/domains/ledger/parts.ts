import type { Outgoing } from '#lib/net/outgoing.ts'
import type { CheckpointGuard } from './proofs/checkpoint-guard.ts'
import type { Sequencing } from './proofs/sequencing.ts'
import type { TileCache } from './proofs/tile-cache.ts'
import type { Witnessing } from './proofs/witnessing.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type LedgerParts = {
  /** The same for the witnesses of the ledger, which the settings name. */
  toWitnesses: Outgoing
  /** Whom this process has asked what they have seen of the logs of the ledger. */
  witnessing: Witnessing
  /** Whose rows of the ledger are logged next. */
  sequencing: Sequencing
  /** The stored checkpoints of the logs that this process knows, and for how many logs signing has stopped. */
  checkpointGuard: CheckpointGuard
  /** Parts of the logs of the ledger that proofs were made of lately. */
  tiles: TileCache
}
