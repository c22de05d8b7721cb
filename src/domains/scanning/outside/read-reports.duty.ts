import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Duty } from '#duty.ts'
import { checkOne, lookForNew, nextUnchecked } from '../signers/check-signatures.service.ts'
import { mostSigned } from '../signers/signers.model.ts'
import {
  createReader,
  nextDue,
  type Reader,
  type ReaderLimits,
  readerLimits,
  readOne,
  type Write,
} from './read-reports.service.ts'

/** Reads what scanners have found, as it comes in, and looks who has signed what is said of it. Organisations take turns. */
export const readReports: Duty = readReportsWithin({ reader: readerLimits, rows: mostSigned.ofDocument })

/** With `rows` for how many may come of one document that is signed. */
type Limits = { reader: ReaderLimits; rows: number }

export function readReportsWithin(limits: Limits): Duty {
  return {
    name: 'reports.read',
    everyMs: 5_000,
    runsOn: 'one node',
    wake: ({ scanning }) => scanning.reported,
    async run(app, lease) {
      await using reader = createReader(limits.reader)
      const done = { reports: 0, signatures: 0 }
      try {
        await doAll(app, lease, { reader, rows: limits.rows }, done)
      } catch (error) {
        if (!lease.signal.aborted) throw error
      }
      return done
    },
  }
}

type Within = { reader: Reader; rows: number }

/** In turns, so that however much waits to be read holds up nothing that is signed, which may take something back. */
async function doAll(app: App, lease: Lease, { reader, rows }: Within, done: { reports: number; signatures: number }) {
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
      await checkOne(app, reader, unchecked, { write, signal: lease.signal, rows })
      last.checked = unchecked.organization
      done.signatures++
    }
    if (!signer && !due && !unchecked) return
  }
}
