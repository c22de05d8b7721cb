import type { Duty } from '#duty.ts'
import { compareCheckpoints, countSuspendedLogs } from './stored-checkpoints.service.ts'
import { readWalPosition } from './stored-checkpoints.store.ts'

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
