import type { Domain } from '#domain.ts'
import { LedgersService } from '#gen/pinfold/control/registry/v1/ledgers_pb.ts'
import { backfillLedgers, compareLedgers, countLedgers, sequenceLedgers, witnessLedgers } from './ledger.job.ts'
import { ledgerEvents, ledgers } from './ledgers/ledgers.control.ts'
import { openLedger } from './open-parts.ts'
import { resources } from './resources.ts'

export const ledger: Domain = {
  parts: openLedger,
  services: [{ desc: LedgersService, handlers: ledgers }],
  eventBodies: [...ledgerEvents],
  resources,
  jobs: [sequenceLedgers, compareLedgers, countLedgers, backfillLedgers, witnessLedgers],
}
