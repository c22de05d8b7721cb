import { deleteRecordsOfDeleted } from '#domains/registry/images/deleted-contents.service.ts'
import type { Job } from '#job.ts'
import { sweepComponents, sweepLists, sweepSigned } from './cleanup.service.ts'

/**
 * Background job that deletes packages that no image contains any more, and signed statements on deleted images. Each transaction
 * deletes few rows.
 */
export const sweepScanning: Job = {
  name: 'vulnerabilities.sweep',
  everyMs: 60 * 60_000,
  runsOn: 'one node',
  async run(app, lease) {
    const check = (): void => {
      lease.check()
      lease.signal.throwIfAborted()
    }
    const sweeping = { app, tx: lease.tx, check }
    // The newest contents of each organization stay.
    await deleteRecordsOfDeleted(sweeping)
    const [lists, packages] = [await sweepLists(sweeping), await sweepComponents(sweeping)]
    return { lists, packages, signed: await sweepSigned(sweeping) }
  },
}
