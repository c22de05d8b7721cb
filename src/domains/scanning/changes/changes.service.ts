// Tells of what is found and resolved in images that tags point to. The findings themselves say what was told, so whatever
// stops this, it goes on where it was, and tells nothing twice.
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
const placesAtOnce = 20
/** What a transaction looks at, unless in one place more is found in one package. */
const mostPerSlice = 2000

/** Notes what is to be told of findings that have changed; answers with of how many packages. */
export async function noteChanges({ db }: Pick<App, 'db'>, lease: Lease): Promise<number> {
  let noted = 0
  for (const turned of ['came', 'went'] as const) {
    for (let after = 0; lease.holds(); ) {
      const found = await store.untold(db, turned, after, findingsAtOnce)
      const last = found.at(-1)
      if (!last) break
      after = last.findingNo
      const places = [...new Map(found.map((one) => [store.foundPlaceKey(one), one])).values()]
      for (const slice of await slicesOf(db, places)) noted += await lease.tx((tx) => noteSome(tx, slice))
    }
  }
  return noted
}

/** What organisations find by their own advisories is apart, since very many may speak of one package. */
async function slicesOf(db: App['db'], places: readonly store.FoundPlace[]): Promise<store.FoundPlace[][]> {
  const totals = await store.countTellable(db, places)
  const slices: store.FoundPlace[][] = []
  let findings = 0
  for (const one of places) {
    const total = totals.get(store.foundPlaceKey(one)) ?? 0
    const slice = slices.at(-1)
    findings += total
    if (slice && slice.length < placesAtOnce && findings <= mostPerSlice) slice.push(one)
    else {
      slices.push([one])
      findings = total
    }
  }
  return slices
}

/** Of those that do not wait to be compared again, since their findings are in the middle of changing. */
async function noteSome(tx: Tx, places: readonly store.FoundPlace[]): Promise<number> {
  const itemsOf = (one: store.FoundPlace) =>
    ecosystemsOf(one).flatMap((ecosystem) => [one.name, one.origin].map((name) => packageItem(ecosystem, name)))
  const waiting = await store.waitingItems(tx, matchKinds.package, [...new Set(places.flatMap(itemsOf))])
  const atRest = places.filter((one) => !itemsOf(one).some((item) => waiting.has(item)))
  if (atRest.length === 0) return 0
  const findings = await store.tellable(tx, atRest, ownSource)
  for (const those of Map.groupBy(findings, store.foundPlaceKey).values()) {
    await noteOne(tx, those)
  }
  const isOpen = ({ goneTime }: store.TellableFinding) => goneTime === ''
  const numbers = (those: readonly store.TellableFinding[]) => those.map(({ findingNo }) => findingNo)
  await store.noteTold(tx, numbers(findings.filter((one) => isOpen(one) && !one.isTold)), 1)
  await store.noteTold(tx, numbers(findings.filter((one) => !isOpen(one))), 0)
  return new Set(atRest.map(({ componentNo }) => componentNo)).size
}

/** Compares what was told of one package with what is so now: a record that was only written anew changes nothing. */
async function noteOne(tx: Tx, findings: readonly store.TellableFinding[]): Promise<void> {
  const certain = findings.filter(({ state }) => state === findingStates.vulnerable)
  const before = timesOf(certain.filter(({ isTold }) => isTold))
  const now = timesOf(certain.filter(({ goneTime }) => goneTime === ''))
  const { componentNo, place } = findings[0]!
  const news = timesOf(certain.filter(({ goneTime, isFirst }) => goneTime === '' && !isFirst))
  for (const [vulnerability, changeTime] of news) {
    if (before.has(vulnerability)) continue
    await store.addChange(tx, { vulnerability, place, kind: 'found', changeTime, componentNo })
  }
  for (const [vulnerability, changeTime] of before) {
    if (now.has(vulnerability)) continue
    await store.addChange(tx, { vulnerability, place, kind: 'resolved', changeTime, componentNo })
  }
}

/** The vulnerabilities with the first time that something of them changed. */
function timesOf(findings: readonly store.TellableFinding[]): Map<string, string> {
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
