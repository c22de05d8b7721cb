// Compares packages with what is known of vulnerabilities, and keeps what follows from it as intervals.

import { withAllReleases } from '#contents/ecosystems.ts'
import { verdictOf } from '#contents/match.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { groupExists } from '#domains/iam/groups/groups.service.ts'
import { addBytes } from '#domains/registry/blobs/usage.service.ts'
import type { Step } from '#lib/lists/paging.ts'
import { compareInstalled, type Scheme, schemeOf } from '#versions/order.ts'
import type { VersionOrder } from '#versions/ranges.ts'
import type { MatchedComponent, StoredComponent } from '../lists/lists.model.ts'
import type { RecordSeverity } from '../records/records.model.ts'
import {
  type AffectedRow,
  bytesOfFinding,
  findingStates,
  keptOf,
  type NewFinding,
  type OpenFinding,
} from './findings.model.ts'
import * as store from './findings.store.ts'
import { severityOf } from './severity.model.ts'

/** Where a slice begins and ends, by the numbers of what is said. */
type Page = { after: number; upTo: number; rows: readonly AffectedRow[]; isLast: boolean }

/**
 * `changed`: the components for which what counts for everybody has changed. `added`: how many findings there are more than
 * before, of all and of those that count for everybody.
 */
export type Slice = { changed: number[]; added: number; addedForAll: number; next: number | undefined }

/**
 * Brings the findings of some components to what follows from what is known now, with no more than `most` statements about
 * packages. `after` is where the slice before has ended, and `next` where this one has; undefined: all has been compared. `whole`:
 * the slices before have compared all up to `after`, so that after the last the components count as compared. What is found in
 * components that are held gets less, never more.
 */
export async function matchSlice(
  tx: Tx,
  components: readonly MatchedComponent[],
  { after = 0, most, whole = true, now }: { after?: number; most: number; whole?: boolean; now: string },
): Promise<Slice> {
  const page = await pageOf(tx, components, { after, most })
  const numbers = components.map(({ componentNo }) => componentNo)
  const found = await findingsOf(tx, components, page.rows)
  // Of others than those who say something here, nothing is read, however many speak of packages of this name.
  const places = [...new Set(found.map(({ place }) => place).filter((place) => place !== ''))]
  const before = places.length > 0 ? await store.countOwn(tx, { components: numbers, places }, after) : []
  const wanted = keptOf(found, before)
  const open = await store.openFindings(tx, numbers, page)
  const keyOf = ({ componentNo, affectedNo, state, severity }: NewFinding | OpenFinding) =>
    `${componentNo} ${affectedNo} ${state} ${severity}`
  const there = new Set(open.map(keyOf))
  const stays = new Set(wanted.map(keyOf))
  const gone = open.filter((one) => !stays.has(keyOf(one)))
  const held = new Set(components.filter(({ held }) => held).map(({ componentNo }) => componentNo))
  const known = new Set(open.map(placeOf))
  const added = wanted.filter((one) => {
    return !there.has(keyOf(one)) && (!held.has(one.componentNo) || known.has(placeOf(one)))
  })
  // Ends before what takes its place begins, since only one holds at a time.
  await store.closeFindings(
    tx,
    gone.map(({ findingNo }) => findingNo),
    now,
  )
  await store.insertFindings(tx, added, now)
  await chargeOwn(tx, added)
  const compared = numbers.filter((number) => !held.has(number))
  if (page.isLast && whole && compared.length > 0) await store.noteMatched(tx, compared, now)
  return {
    changed: [...new Set([...gone, ...added].filter(isForAll).map(({ componentNo }) => componentNo))],
    added: added.length - gone.length,
    addedForAll: added.filter(isForAll).length - gone.filter(isForAll).length,
    next: page.isLast ? undefined : page.upTo,
  }
}

/** What an organisation finds by its own advisories is charged to it, once for each package, however many images have that. */
async function chargeOwn(tx: Tx, added: readonly NewFinding[]): Promise<void> {
  for (const [place, found] of Map.groupBy(added, (one) => one.place)) {
    const isThere = place !== '' && (await groupExists(tx, place))
    if (isThere) await addBytes(tx, place, found.length * bytesOfFinding)
  }
}

const isForAll = ({ place }: { place: string }): boolean => place === ''
/** Only one finding holds at a time of what is said of a component. */
const placeOf = ({ componentNo, affectedNo }: NewFinding | OpenFinding): string => `${componentNo} ${affectedNo}`

async function pageOf(reader: Reader, components: readonly StoredComponent[], { after, most }: Step): Promise<Page> {
  const names = new Set(components.flatMap(({ name, origin }) => [name, origin]))
  const ecosystems = new Set(components.flatMap(ecosystemsOf))
  const all = { names: [...names], ecosystems: [...ecosystems].filter((one) => one !== '') }
  const rows = await store.affectedNow(reader, all, { after, most })
  const isLast = rows.length < most
  return { after, upTo: isLast ? Number.MAX_SAFE_INTEGER : rows.at(-1)!.affectedNo, rows, isLast }
}

/** Where something can be said of a component: in its ecosystem, and by an organisation's own advisories of its kind. */
export const ecosystemsOf = ({ ecosystem, kind }: Pick<StoredComponent, 'ecosystem' | 'kind'>): string[] => [
  ...withAllReleases(ecosystem),
  kind,
]

/** What follows from what is said, with how bad it is. */
export async function findingsOf(
  reader: Reader,
  components: readonly StoredComponent[],
  rows: readonly AffectedRow[],
): Promise<NewFinding[]> {
  const byName = Map.groupBy(rows, ({ name }) => name)
  const hits: { component: StoredComponent; row: AffectedRow; state: number }[] = []
  for (const component of components) {
    const order = orderOf(component)
    const candidates = [...new Set([component.origin, component.name])].flatMap((name) => byName.get(name) ?? [])
    for (const row of candidates) {
      if (!ecosystemsOf(component).includes(row.ecosystem)) continue
      const verdict = verdictOf(component, row, order)
      if (verdict !== 'clear') hits.push({ component, row, state: findingStates[verdict] })
    }
  }
  const rated = await severitiesOf(
    reader,
    hits.map(({ row }) => row),
  )
  return hits.map(({ component, row, state }) => ({
    componentNo: component.componentNo,
    affectedNo: row.affectedNo,
    place: row.place,
    state,
    severity: rated.get(row.affectedNo)!,
  }))
}

const schemes: Readonly<Record<string, Scheme>> = { apk: 'apk', deb: 'deb', rpm: 'rpm' }

/** The order of the versions of a component; undefined when there is none that we know. */
export function orderOf({ kind, ecosystem }: { kind: string; ecosystem: string }): VersionOrder | undefined {
  const scheme = schemes[kind] ?? schemeOf(ecosystem)
  return scheme && ((one, other) => compareInstalled(scheme, one, other))
}

/** How bad each is, by its number. */
async function severitiesOf(reader: Reader, rows: readonly AffectedRow[]): Promise<Map<number, number>> {
  const unsaid = rows.filter(({ severity }) => severity === 0).map(({ recordNo }) => recordNo)
  const records = new Map<number, store.RecordNames>()
  for (const one of unsaid.length > 0 ? await store.recordsOf(reader, [...new Set(unsaid)]) : []) {
    records.set(one.recordNo, one)
  }
  const without = [...records.values()].filter(({ severities }) => severities.length === 0)
  const names = [...new Set(without.flatMap((one) => one.names))]
  const others = Map.groupBy(await store.severitiesNamed(reader, names), ({ name }) => name)
  return new Map(
    rows.map((row): [number, number] => {
      const record = records.get(row.recordNo)
      const elsewhere = (record?.names ?? []).flatMap((name): RecordSeverity[] => {
        return (others.get(name) ?? []).flatMap(({ severities }) => severities)
      })
      return [row.affectedNo, severityOf(row.severity, record?.severities ?? [], elsewhere)]
    }),
  )
}
