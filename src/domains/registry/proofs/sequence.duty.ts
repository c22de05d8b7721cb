import type { Duty } from '#duty.ts'
import { servedHost } from '../repos/served-host.store.ts'
import { backfillSome } from './backfill.service.ts'
import { nextBackfill } from './backfill.store.ts'
import { answersTo, askBeforeSigning, collectCosignatures } from './cosignatures.service.ts'
import { sequenceEveryMs } from './logs.model.ts'
import { isAnythingDue } from './logs.store.ts'
import { sequenceSome, signSome } from './sequence.service.ts'

/** What it locks is the lease; the rows that wait are only ever added by others. */
const rowLocks = { isolation: 'rowLocks' } as const
/** The signature behind it waits for the disk, and takes along what it is about; what is lost before that is logged anew. */
const beforeSigning = { ...rowLocks, durability: 'later' } as const

/** Of some hundred rows each. */
const batchesPerRun = 20

/** The rows of the ledger get into the logs, which are signed once for all that came since the last run. */
export const sequenceLedgers: Duty = {
  name: 'ledger.sequence',
  everyMs: sequenceEveryMs,
  runsOn: 'one node',
  async run(app, lease) {
    if (app.config.ledgerProofs === 'off' || !(await isAnythingDue(app.db))) return {}
    const host = await servedHost(app.db, app.config.url)
    if (host === '') return {}
    // However much comes, what is there is signed once a second.
    let left = batchesPerRun
    const entries = await lease.inBatches(async (tx) => (left-- > 0 ? sequenceSome(tx, app, host) : 0), beforeSigning)
    const process = answersTo(app)
    let checkpoints = await lease.inBatches((tx) => signSome(tx, app, process), rowLocks)
    if (process && (await askBeforeSigning(app, lease.tx, lease.signal)) > 0) {
      checkpoints += await lease.inBatches((tx) => signSome(tx, app, process), rowLocks)
    }
    return { entries, checkpoints }
  },
}

/** Witnesses are asked to sign the heads of the logs, at most once a minute. */
export const witnessLedgers: Duty = {
  name: 'ledger.witness',
  everyMs: 60_000,
  runsOn: 'one node',
  async run(app, lease) {
    if (app.config.ledgerProofs === 'off') return {}
    return { cosigned: await collectCosignatures(app, lease.tx, lease.signal) }
  },
}

/** What was in the ledger before its log comes into it. */
export const backfillLedgers: Duty = {
  name: 'ledger.backfill',
  everyMs: 60_000,
  runsOn: 'one node',
  async run({ config, db }, lease) {
    if (config.ledgerProofs === 'off' || !(await nextBackfill(db))) return {}
    return { rows: await lease.inBatches(backfillSome, rowLocks) }
  },
}
