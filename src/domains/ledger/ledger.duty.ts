import { servedHost } from '#domains/registry/repos/repos.store.ts'
import type { Duty } from '#duty.ts'
import { backfillSome } from './proofs/backfill.service.ts'
import { nextBackfill } from './proofs/backfill.store.ts'
import { answersTo, askBeforeSigning, collectCosignatures } from './proofs/cosignatures.service.ts'
import { sequenceEveryMs } from './proofs/logs.model.ts'
import { isAnythingDue, sequenceSome } from './proofs/sequence.service.ts'
import { signLogs } from './proofs/signing.service.ts'
import { compareCheckpoints, countSuspendedLogs } from './proofs/stored-checkpoints.service.ts'
import { readWalPosition } from './proofs/stored-checkpoints.store.ts'

/** What it locks is the lease; the rows that wait are only ever added by others. */
const rowLocks = { isolation: 'rowLocks' } as const
/** The commit before a checkpoint is stored waits for the disk, and takes these along; what is lost before that is logged anew. */
const beforeSigning = { ...rowLocks, durability: 'later' } as const

/** Of some hundred rows each; the pauses behind them are a second together, so that no run signs earlier than that. */
const batchesPerRun = 50
/** Where batches take long, so many of them would keep the signature waiting, also with only a few rows each. */
const runMs = 5000

/** The rows of the ledger get into the logs, which are signed once for all that came since the last run. */
export const sequenceLedgers: Duty = {
  name: 'ledger.sequence',
  everyMs: sequenceEveryMs,
  runsOn: 'one node',
  wake: ({ sequencing }) => sequencing.left,
  async run(app, lease) {
    if (app.config.ledgerProofs === 'off' || !(await isAnythingDue(app))) return {}
    const host = await servedHost(app.db, app.config.url)
    if (host === '') return {}
    // However much comes, what is there is signed every second or two, and every few on a busy machine.
    let left = batchesPerRun
    const { monotonic } = app.sequencing
    const end = monotonic() + runMs
    const isOver = () => left-- <= 0 || monotonic() > end
    let mayBeMore = false
    const entries = await lease.inBatches(async (tx) => {
      mayBeMore = isOver()
      return mayBeMore ? 0 : sequenceSome(tx, app, host)
    }, beforeSigning)
    const answeredTo = answersTo(app)
    const { signed, isWaiting } = await signLogs(app, lease, { answeredTo })
    let checkpoints = signed
    if (answeredTo && !isWaiting && (await askBeforeSigning(app, lease.tx, lease.signal)) > 0) {
      checkpoints += (await signLogs(app, lease, { answeredTo })).signed
    }
    if (mayBeMore) app.sequencing.left.notify()
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

/**
 * Backfill: queues the entries of a ledger that are older than its log. New entries wait for it, and `pinfold restored` requests it
 * while no server runs, so the job runs often.
 */
export const backfillLedgers: Duty = {
  name: 'ledger.backfill',
  everyMs: 5000,
  runsOn: 'one node',
  async run({ config, db }, lease) {
    if (config.ledgerProofs === 'off' || !(await nextBackfill(db))) return {}
    return { rows: await lease.inBatches(backfillSome, rowLocks) }
  },
}

const watchEveryMs = 5000

/**
 * Compares all logs with their stored checkpoints once in each process, and whenever PostgreSQL went back in time: after a
 * failover or a recovery. Signing compares each log by itself in any case; this finds those that nobody writes to.
 */
export const compareLedgers: Duty = {
  name: 'ledger.compare',
  everyMs: watchEveryMs,
  runsOn: 'one node',
  async run(app, lease) {
    const { checkpointGuard: guard } = app
    const position = await readWalPosition(app.db)
    if (app.config.ledgerProofs === 'off' || !guard.isComparisonDue(position)) return {}
    const found = await compareCheckpoints(app, lease)
    if (!found) return {}
    guard.compared(position)
    return found
  },
}

/** Counts the logs for which signing has stopped. */
export const countLedgers: Duty = {
  name: 'ledger.count',
  everyMs: watchEveryMs,
  runsOn: 'every node',
  async run(app) {
    await countSuspendedLogs(app)
    return {}
  },
}
