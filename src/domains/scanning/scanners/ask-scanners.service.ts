// Has scanners look at what waits for them. Each has lanes of its own, and in them organisations take turns, so that neither a
// scanner that is slow nor an organisation with much to scan keeps anybody else waiting.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { type Asked, readMetadata, ScannerError } from './adapter.service.ts'
import { nextJob, organizationsDue } from './scan-jobs.store.ts'
import { postpone, type Stepped, stepScan } from './scan-step.service.ts'
import type { ScanJob, Scanner } from './scanners.model.ts'
import { headersFor } from './scanners.service.ts'
import * as store from './scanners.store.ts'

/** How many requests a scanner is sent at once, each for another organisation. */
const lanes = 4
/** How old what a scanner says of itself may be. */
const metadataMs = 3_600_000
/** While somebody is waited for, how long until others are looked at. */
const lookMs = 1000

export type Asking = { begun: number; reported: number; 'given up': number }

type Lane = {
  scanner: Scanner
  /** The organisations that are being served. */
  serving: Set<string>
  /** Whose turn it was last. */
  after: string
  /** It is not asked again in this run. */
  resting: boolean
}

/** Steps everything on that is due, until nothing is. */
export async function askScanners(app: App, lease: Lease): Promise<Asking> {
  const sum: Asking = { begun: 0, reported: 0, 'given up': 0 }
  const url = await store.servedUrl(app.db, app.config.url)
  if (url === '') return sum
  const all = new Map<number, Lane>()
  const flights = new Set<Promise<void>>()
  const failures: unknown[] = []
  let news = Promise.withResolvers<void>()
  const unsubscribe = app.scanning.scans.subscribe(() => news.resolve())
  try {
    while (lease.holds() && failures.length === 0) {
      const coming = news.promise
      for (const scanner of await store.listScanners(app.db)) {
        const lane = all.get(scanner.id) ?? { scanner, serving: new Set(), after: '', resting: false }
        all.set(scanner.id, lane)
        lane.scanner = scanner
        for (const job of await dueIn(app, lane)) {
          const flight: Promise<void> = serve({ app, lease, url }, lane, job)
            .then((stepped) => {
              if (stepped === 'away') lane.resting = true
              else if (stepped !== 'waits') sum[stepped]++
            })
            .catch((error: unknown) => void failures.push(error))
            .finally(() => {
              lane.serving.delete(job.organization)
              flights.delete(flight)
              news.resolve()
            })
          flights.add(flight)
        }
      }
      if (flights.size === 0) break
      await Promise.race([coming, sleep(lookMs, undefined, { ref: false })])
      news = Promise.withResolvers()
    }
  } finally {
    unsubscribe()
    await Promise.all(flights)
  }
  if (failures.length > 0 && !lease.signal.aborted) throw failures[0]
  return sum
}

/** As many as the scanner has lanes for; the organisation behind the last one is next. */
async function dueIn({ db, clock }: App, lane: Lane): Promise<ScanJob[]> {
  if (lane.resting || lane.serving.size >= lanes) return []
  const now = clock().toISOString()
  const jobs: ScanJob[] = []
  for (const organization of await organizationsDue(db, lane.scanner.id, lane.after, now)) {
    if (lane.serving.has(organization)) continue
    const job = await nextJob(db, lane.scanner.id, organization, now)
    if (!job) continue
    lane.serving.add(organization)
    lane.after = organization
    jobs.push(job)
    if (lane.serving.size >= lanes) break
  }
  return jobs
}

type Serving = { app: App; lease: Lease; url: string }

async function serve({ app, lease, url }: Serving, lane: Lane, job: ScanJob): Promise<Stepped> {
  const asked: Asked = {
    outgoing: app.toScanners,
    url: lane.scanner.url,
    headers: await headersFor(app, lane.scanner),
    signal: lease.signal,
  }
  const scanner = await known(app, lease, lane, asked)
  if (scanner) return stepScan({ app, lease, scanner, asked, url }, job)
  await postpone({ app, lease }, job)
  return 'away'
}

/** The scanner with what it says of itself; `undefined` when it does not say. */
async function known(app: App, lease: Lease, lane: Lane, asked: Asked): Promise<Scanner | undefined> {
  const { scanner } = lane
  const now = app.clock()
  if (scanner.askTime !== '' && now.getTime() - Date.parse(scanner.askTime) < metadataMs) return scanner
  try {
    const said = { ...(await readMetadata(asked)), askTime: now.toISOString() }
    await lease.tx((tx) => store.noteSaid(tx, scanner, said))
    return { ...scanner, ...said }
  } catch (error) {
    if (!(error instanceof ScannerError)) throw error
    await lease.tx((tx) => store.noteProblem(tx, scanner, error.message))
    return undefined
  }
}
