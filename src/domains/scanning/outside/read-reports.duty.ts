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
      await doAll(app, lease, reader, done)
    } catch (error) {
      if (!lease.signal.aborted) throw error
    }
    return done
  },
}

/** In turns, so that however much waits to be read holds up nothing that is signed, which may take something back. */
async function doAll(app: App, lease: Lease, reader: Reader, done: { reports: number; signatures: number }) {
  const write: Write = (work) => lease.tx(work)
  const last = { read: '', checked: '', signer: 0 }
  while (lease.holds()) {
    const [signer, due] = [await lookForNew(app, write, last.signer), await nextDue(app, last.read)]
    if (signer) last.signer = signer.id
    if (due) {
      await readOne(app, reader, due, { write, signal: lease.signal })
      last.read = due.organization
      done.reports++
    }
    const unchecked = lease.holds() ? await nextUnchecked(app, last.checked) : undefined
    if (unchecked) {
      await checkOne(app, reader, unchecked, { write, signal: lease.signal })
      last.checked = unchecked.organization
      done.signatures++
    }
    if (!signer && !due && !unchecked) return
  }
}
