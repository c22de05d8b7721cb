// Records new and resolved findings that events must report. Each finding stores if it was reported. So interrupted work
// continues, and no finding is reported twice.
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { ecosystemsOf } from '../findings/compare.service.ts'
import { findingStates } from '../findings/findings.model.ts'
import { ownSource } from '../own-advisories/own-advisories.service.ts'
import { matchKinds, packageItem } from '../queue/queue.model.ts'
import { vulnerabilityIds } from '../records/records.model.ts'
import * as store from './changes.store.ts'

const findingsAtOnce = 200
const componentsAtOnce = 20
/** Limit on the findings of one transaction. A single package of one organization can exceed this limit. */
const mostPerSlice = 2000

/** Records new and resolved findings that events have not reported yet. Returns the number of processed packages. */
export async function noteChanges({ db }: Pick<App, 'db'>, lease: Lease): Promise<number> {
  let noted = 0
  for (const turned of ['came', 'went'] as const) {
    for (let after = 0; lease.holds(); ) {
      const found = await store.listUnannounced(db, turned, after, findingsAtOnce)
      const last = found.at(-1)
      if (!last) break
      after = last.findingNo
      const packages = [...new Map(found.map((one) => [store.findingComponentKey(one), one])).values()]
      for (const slice of await slicesOf(db, packages)) noted += await lease.tx((tx) => noteSome(tx, slice))
    }
  }
  return noted
}

/**
 * Splits packages into slices. Findings from each organization's own advisories have separate slices, because one package can
 * have many of these.
 */
async function slicesOf(
  db: App['db'],
  packages: readonly store.FindingComponent[],
): Promise<store.FindingComponent[][]> {
  const totals = await store.countReportable(db, packages)
  const slices: store.FindingComponent[][] = []
  let findings = 0
  for (const one of packages) {
    const total = totals.get(store.findingComponentKey(one)) ?? 0
    const slice = slices.at(-1)
    findings += total
    if (slice && slice.length < componentsAtOnce && findings <= mostPerSlice) slice.push(one)
    else {
      slices.push([one])
      findings = total
    }
  }
  return slices
}

/**
 * Records changes of packages, except for packages that are queued for comparison. Findings of queued packages are about to
 * change.
 */
async function noteSome(tx: Tx, packages: readonly store.FindingComponent[]): Promise<number> {
  const itemsOf = (one: store.FindingComponent) =>
    ecosystemsOf(one).flatMap((ecosystem) => [one.name, one.origin].map((name) => packageItem(ecosystem, name)))
  const waiting = await store.waitingItems(tx, matchKinds.package, [...new Set(packages.flatMap(itemsOf))])
  const atRest = packages.filter((one) => !itemsOf(one).some((item) => waiting.has(item)))
  if (atRest.length === 0) return 0
  const findings = await store.reportableFindings(tx, atRest, ownSource)
  for (const those of Map.groupBy(findings, store.findingComponentKey).values()) {
    await noteOne(tx, those)
  }
  const isOpen = ({ goneTime }: store.ReportableFinding) => goneTime === ''
  const numbers = (those: readonly store.ReportableFinding[]) => those.map(({ findingNo }) => findingNo)
  await store.markAnnounced(tx, numbers(findings.filter((one) => isOpen(one) && !one.isPublishedEvent)), 1)
  await store.markAnnounced(tx, numbers(findings.filter((one) => !isOpen(one))), 0)
  return new Set(atRest.map(({ componentNo }) => componentNo)).size
}

/**
 * Compares the reported vulnerabilities of a package with the present vulnerabilities. A rewritten record with the same
 * vulnerabilities causes no change.
 */
async function noteOne(tx: Tx, findings: readonly store.ReportableFinding[]): Promise<void> {
  const certain = findings.filter(({ state }) => state === findingStates.vulnerable)
  const before = timesOf(certain.filter(({ isPublishedEvent }) => isPublishedEvent))
  const now = timesOf(certain.filter(({ goneTime }) => goneTime === ''))
  const { componentNo, organization } = findings[0]!
  const news = timesOf(certain.filter(({ goneTime, isFirst }) => goneTime === '' && !isFirst))
  for (const [vulnerability, changeTime] of news) {
    if (before.has(vulnerability)) continue
    await store.addChange(tx, { vulnerability, organization, kind: 'found', changeTime, componentNo })
  }
  for (const [vulnerability, changeTime] of before) {
    if (now.has(vulnerability)) continue
    await store.addChange(tx, { vulnerability, organization, kind: 'resolved', changeTime, componentNo })
  }
}

/** Vulnerabilities, each with the time at which its first finding opened or closed. */
function timesOf(findings: readonly store.ReportableFinding[]): Map<string, string> {
  const times = new Map<string, string>()
  for (const { record, foundTime, goneTime } of findings) {
    const time = goneTime === '' ? foundTime : goneTime
    for (const id of vulnerabilityIds(record)) {
      const known = times.get(id)
      if (known === undefined || time < known) times.set(id, time)
    }
  }
  return times
}
