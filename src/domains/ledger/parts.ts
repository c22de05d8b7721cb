import type { Outgoing } from '#lib/net/outgoing.ts'
import type { CheckpointGuard } from './proofs/checkpoint-guard.ts'
import type { Sequencing } from './proofs/sequencing.ts'
import type { TileCache } from './proofs/tile-cache.ts'
import type { Witnessing } from './proofs/witnessing.ts'

/** Caches, signals and clients of the ledger domain. They exist as long as the process runs. */
export type LedgerParts = {
  /** Client for the witnesses that are named in the settings. */
  toWitnesses: Outgoing
  /** Answers of witnesses to this process. */
  witnessing: Witnessing
  /** State for taking turns between tag histories. */
  sequencing: Sequencing
  /** Stored checkpoints that this process has seen, and the number of suspended logs. */
  checkpointGuard: CheckpointGuard
  /** Cache of log tiles that recent proofs used. */
  tiles: TileCache
}
