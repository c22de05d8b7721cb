import type { Outgoing } from '#lib/net/outgoing.ts'
import type { CheckpointGuard } from './proofs/checkpoint-guard.ts'
import type { Sequencing } from './proofs/sequencing.ts'
import type { TileCache } from './proofs/tile-cache.ts'
import type { Witnessing } from './proofs/witnessing.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type LedgerParts = {
  /** Client for the witnesses that the settings name. */
  toWitnesses: Outgoing
  /** Witnesses that this process has asked about the logs. */
  witnessing: Witnessing
  /** Order in which tag histories are logged. */
  sequencing: Sequencing
  /** Stored checkpoints that this process knows, and the number of suspended logs. */
  checkpointGuard: CheckpointGuard
  /** Tiles of the logs that recent proofs used. */
  tiles: TileCache
}
