import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Job } from '#job.ts'
import {
  createReader,
  dueReports,
  type Reader,
  type ReaderLimits,
  readerLimits,
  readOne,
  type Write,
} from '../scan-reports/read-reports.service.ts'
import type { UncheckedReport, WaitingReport } from '../scan-reports/scan-reports.model.ts'
import { checkOne, dueChecks, findNewSigner } from './check-signatures.service.ts'
import { mostSigned } from './signers.model.ts'

/**
 * Background job that parses queued reports and verifies signed documents. Each organization gets the same share of processing
 * time.
 */
export const readReports: Job = readReportsWithin({ reader: readerLimits, rows: mostSigned.ofDocument })

/** Limits of the job. `rows` is the limit on the rows that one signed document can add. */
type Limits = { reader: ReaderLimits; rows: number }

export function readReportsWithin(limits: Limits): Job {
  return {
    name: 'reports.read',
    everyMs: 5_000,
    runsOn: 'one node',
    wake: ({ scanning }) => scanning.reported,
    // An update can queue a refused report again. A new signer may have signed documents that exist already.
    wakeOn: ['insert scan_reports', 'update scan_reports', 'insert vex_signers'],
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

/** Position of the job: the organizations of the last parsed report and of the last verified document, and the last new signer. */
type Last = { read: string; check: string; signer: number }

/** A report to parse, or a document with signatures to verify. */
type DueDocument = ({ kind: 'read' } & WaitingReport) | ({ kind: 'check' } & UncheckedReport)

/** Alternates between parsing and verifying. Otherwise many reports could delay a signed document, which may withdraw a statement. */
async function doAll(app: App, lease: Lease, { reader, rows }: Within, done: { reports: number; signatures: number }) {
  const write: Write = (work) => lease.tx(work)
  const last: Last = { read: '', check: '', signer: 0 }
  let first: DueDocument['kind'] = 'read'
  while (lease.holds()) {
    const signer = await findNewSigner(app, write, last.signer)
    if (signer) last.signer = signer.id
    const due: DueDocument | undefined = await app.scanning.turns.choose(dueDocuments(app, last, first))
    if (!due && !signer) return
    if (!due) continue
    await inTurn(app, lease, due, (signal) =>
      due.kind === 'read'
        ? readOne(app, reader, due, { write, signal })
        : checkOne(app, reader, due, { write, signal, rows }),
    )
    last[due.kind] = due.organization
    done[due.kind === 'read' ? 'reports' : 'signatures']++
    first = due.kind === 'read' ? 'check' : 'read'
  }
}

/** The first due document of each organization. All documents of the kind `first` come before those of the other kind. */
async function* dueDocuments(
  app: App,
  { read, check }: Pick<Last, 'read' | 'check'>,
  first: DueDocument['kind'],
): AsyncGenerator<DueDocument> {
  for (const kind of first === 'read' ? (['read', 'check'] as const) : (['check', 'read'] as const)) {
    if (kind === 'read') for await (const one of dueReports(app, read)) yield { kind, ...one }
    else for await (const one of dueChecks(app, check)) yield { kind, ...one }
  }
}

/**
 * Processes a document, and aborts if this takes long while other organizations wait. The document stays in the queue, and next
 * time it is processed without interruption.
 */
async function inTurn(app: App, lease: Lease, due: DueDocument, work: (signal: AbortSignal) => Promise<void>) {
  const { organization, repo, digest } = due
  const othersWait = async () => {
    for await (const other of dueDocuments(app, { read: organization, check: organization }, 'read')) {
      if (other.organization !== organization) return true
    }
    return false
  }
  await app.scanning.turns.take(due, othersWait, async (giveWay) => {
    try {
      await work(AbortSignal.any([lease.signal, giveWay]))
    } catch (error) {
      if (!giveWay.aborted || lease.signal.aborted) throw error
      app.log.info('scanner report postponed for other organizations', { repo, digest })
    }
  })
}
