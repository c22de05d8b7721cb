import { servedHost } from '#domains/registry/repos/repos.store.ts'
import type { Job } from '#job.ts'
import { backfillSome } from './proofs/backfill.service.ts'
import { nextBackfill } from './proofs/backfill.store.ts'
import { answersTo, askBeforeSigning, collectCosignatures } from './proofs/cosignatures.service.ts'
import { sequenceEveryMs } from './proofs/logs.model.ts'
import { isAnythingDue, sequenceSome } from './proofs/sequence.service.ts'
import { signLogs } from './proofs/signing.service.ts'
import { compareCheckpoints, countSuspendedLogs } from './proofs/stored-checkpoints.service.ts'
import { readWalPosition } from './proofs/stored-checkpoints.store.ts'

/** Options of transactions that lock the row of the lease. Other transactions only add rows to the queue. */
const rowLocks = { isolation: 'rowLocks' } as const
/**
 * These commits need not wait for the disk: the commit before a checkpoint is stored does, and makes them durable too. If such a
 * commit is lost, its rows are logged again.
 */
const beforeSigning = { ...rowLocks, durability: 'later' } as const

/**
 * Most batches in one run. A batch has some hundred rows. The pauses between batches take a second in total, so no run signs
 * earlier than that.
 */
const batchesPerRun = 50
/** Time limit for the batches of a run. Slow batches would otherwise delay the signature. */
const runMs = 5000

/** Background job that adds queued rows to the transparency logs. It then signs each log once for all rows since the last run. */
export const sequenceLedgers: Job = {
  name: 'ledger.sequence',
  everyMs: sequenceEveryMs,
  runsOn: 'one node',
  wake: ({ sequencing }) => sequencing.left,
  async run(app, lease) {
    if (app.config.transparencyLog === 'off' || !(await isAnythingDue(app))) return {}
    const host = await servedHost(app.db, app.config.url)
    if (host === '') return {}
    // Logs are signed every second or two, and every few seconds on a busy machine. The number of queued rows makes no
    // difference.
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

/** Background job that asks witnesses to sign the checkpoints of the logs, at most once a minute. */
export const witnessLedgers: Job = {
  name: 'ledger.witness',
  everyMs: 60_000,
  runsOn: 'one node',
  async run(app, lease) {
    if (app.config.transparencyLog === 'off') return {}
    return { cosigned: await collectCosignatures(app, lease.tx, lease.signal) }
  },
}

/**
 * Background job that queues the rows of a tag history that are older than its transparency log. It runs often for two reasons:
 * new entries wait for these rows, and `pinfold server complete-restore` requests the job while no server runs.
 */
export const backfillLedgers: Job = {
  name: 'ledger.backfill',
  everyMs: 5000,
  runsOn: 'one node',
  async run({ config, db }, lease) {
    if (config.transparencyLog === 'off' || !(await nextBackfill(db))) return {}
    return { rows: await lease.inBatches(backfillSome, rowLocks) }
  },
}

const watchEveryMs = 5000

/**
 * Background job that compares all logs with their stored checkpoints. It runs once in each process, and again after a failover
 * or recovery has set PostgreSQL back. Signing compares each log anyway, but logs without new entries are not signed.
 */
export const compareLedgers: Job = {
  name: 'ledger.compare',
  everyMs: watchEveryMs,
  runsOn: 'one node',
  async run(app, lease) {
    const { checkpointGuard: guard } = app
    const position = await readWalPosition(app.db)
    if (app.config.transparencyLog === 'off' || !guard.isComparisonDue(position)) return {}
    const found = await compareCheckpoints(app, lease)
    if (!found) return {}
    guard.compared(position)
    return found
  },
}

/** Background job that counts the logs whose signing is suspended. */
export const countLedgers: Job = {
  name: 'ledger.count',
  everyMs: watchEveryMs,
  runsOn: 'every node',
  async run(app) {
    await countSuspendedLogs(app)
    return {}
  },
}
