import type { Ground } from '#app.ts'
import { createOutgoing } from '#lib/net/outgoing.ts'
import { allowedAddresses } from '#lib/net/private-addresses.ts'
import type { LedgerParts } from './parts.ts'
import { createCheckpointGuard } from './proofs/checkpoint-guard.ts'
import { createSequencing } from './proofs/sequencing.ts'
import { createTileCache } from './proofs/tile-cache.ts'
import { createWitnessing } from './proofs/witnessing.ts'

export function openLedger({ config, db, metrics, monotonic }: Ground): LedgerParts {
  const checkpointGuard = createCheckpointGuard()
  metrics.watchLedgerLogs(() => checkpointGuard.suspended)
  return {
    toWitnesses: createOutgoing({
      allowed: allowedAddresses(config, config.witnessesPrivate),
      allowHttp: config.allowInsecureUpstreams,
    }),
    witnessing: createWitnessing(monotonic),
    sequencing: createSequencing(monotonic),
    checkpointGuard,
    tiles: createTileCache(db),
  }
}
