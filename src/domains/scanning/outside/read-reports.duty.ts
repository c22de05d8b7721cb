import type { Duty } from '#duty.ts'
import { createReader, nextDue, readOne } from './read-reports.service.ts'

/** Reads what scanners have found, as it comes in. Organisations take turns. */
export const readReports: Duty = {
  name: 'reports.read',
  everyMs: 5_000,
  runsOn: 'one node',
  wake: ({ scanning }) => scanning.reported,
  async run(app, lease) {
    let reports = 0
    let after = ''
    let next = await nextDue(app, after)
    if (!next) return { reports }
    await using reader = createReader()
    while (next && lease.holds()) {
      after = next.organization
      try {
        await readOne(app, reader, next, { write: (work) => lease.tx(work), signal: lease.signal })
      } catch (error) {
        if (lease.signal.aborted) break
        throw error
      }
      reports++
      next = await nextDue(app, after)
    }
    return { reports }
  },
}
