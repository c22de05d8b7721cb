import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { checkOne, lookForNew, nextUnchecked } from '../signers/check-signatures.service.ts'
import { createReader, nextDue, type Reader, readOne, type Write } from './read-reports.service.ts'

/** Reads what scanners have found, as it comes in, and looks who has signed what is said of it. Organisations take turns. */
export const readReports: Duty = {
  name: 'reports.read',
  everyMs: 5_000,
  runsOn: 'one node',
  wake: ({ scanning }) => scanning.reported,
  async run(app, lease) {
    await using reader = createReader()
    const done = { reports: 0, signatures: 0 }
    try {
      done.reports = await readAll(app, lease, reader)
      done.signatures = await checkAll(app, lease, reader)
    } catch (error) {
      if (!lease.signal.aborted) throw error
    }
    return done
  },
}

async function readAll(app: App, lease: Lease, reader: Reader): Promise<number> {
  let reports = 0
  let next = await nextDue(app, '')
  while (next && lease.holds()) {
    await readOne(app, reader, next, { write: (work) => lease.tx(work), signal: lease.signal })
    reports++
    next = await nextDue(app, next.organization)
  }
  return reports
}

async function checkAll(app: App, lease: Lease, reader: Reader): Promise<number> {
  const write: Write = (work) => lease.tx(work)
  let documents = 0
  while (lease.holds() && (await lookForNew(app, write))) documents++
  let next = await nextUnchecked(app, '')
  while (next && lease.holds()) {
    await checkOne(app, reader, next, { write, signal: lease.signal })
    documents++
    next = await nextUnchecked(app, next.organization)
  }
  return documents
}
