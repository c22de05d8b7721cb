// Compares packages with advisories and stores the resulting findings. Each finding has a start time, and an end time once it is
// closed.

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
  limitOwnFindings,
  type NewFinding,
  type OpenFinding,
} from './findings.model.ts'
import * as store from './findings.store.ts'
import { severityOf } from './severity.model.ts'

/** Advisory entries between two entry numbers, which are compared in one transaction. */
type Page = { after: number; upTo: number; rows: readonly AffectedRow[]; isLast: boolean }

/**
 * Result of one slice. `changed`: components whose shared findings have changed. `added`: growth of the number of findings, in
 * total and of shared findings. Shared findings come from data sources, other findings from an organization's own advisories.
 */
export type Slice = { changed: number[]; added: number; addedForAll: number; next: number | undefined }

/**
 * Updates the findings of some components by at most `most` advisory entries. `after` is the end of the previous slice. `next` is
 * the end of this slice, or undefined after the last slice. `whole` states that the previous slices covered all entries up to
 * `after`. Only then does the last slice mark the components as compared. Components on hold lose findings but get no new
 * findings.
 */
export async function matchSlice(
  tx: Tx,
  components: readonly MatchedComponent[],
  { after = 0, most, whole = true, now }: { after?: number; most: number; whole?: boolean; now: string },
): Promise<Slice> {
  const page = await pageOf(tx, components, { after, most })
  const numbers = components.map(({ componentNo }) => componentNo)
  const found = await findingsOf(tx, components, page.rows)
  // Reads counts only for organizations with a finding in this slice. Many other organizations can have advisories on the same
  // package name.
  const organizations = [
    ...new Set(found.map(({ organization }) => organization).filter((organization) => organization !== '')),
  ]
  const before = organizations.length > 0 ? await store.countOwn(tx, { components: numbers, organizations }, after) : []
  const wanted = limitOwnFindings(found, before)
  const open = await store.openFindings(tx, numbers, page)
  const keyOf = ({ componentNo, affectedNo, state, severity }: NewFinding | OpenFinding) =>
    `${componentNo} ${affectedNo} ${state} ${severity}`
  const there = new Set(open.map(keyOf))
  const stays = new Set(wanted.map(keyOf))
  const gone = open.filter((one) => !stays.has(keyOf(one)))
  const held = new Set(components.filter(({ held }) => held).map(({ componentNo }) => componentNo))
  const known = new Set(open.map(findingKeyOf))
  const added = wanted.filter((one) => {
    return !there.has(keyOf(one)) && (!held.has(one.componentNo) || known.has(findingKeyOf(one)))
  })
  // Closes old findings before it inserts new ones, because only one finding of a component and an advisory entry can be open.
  const findingNos = gone.map(({ findingNo }) => findingNo)
  await store.closeFindings(tx, findingNos, now)
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

/**
 * Charges findings from an organization's own advisories to the organization. Each package is charged once, however many images
 * contain it.
 */
async function chargeOwn(tx: Tx, added: readonly NewFinding[]): Promise<void> {
  for (const [organization, found] of Map.groupBy(added, (one) => one.organization)) {
    const isThere = organization !== '' && (await groupExists(tx, organization))
    if (isThere) await addBytes(tx, organization, found.length * bytesOfFinding)
  }
}

const isForAll = ({ organization }: { organization: string }): boolean => organization === ''
/** Key of a component and an advisory entry. Each key has at most one open finding. */
const findingKeyOf = ({ componentNo, affectedNo }: NewFinding | OpenFinding): string => `${componentNo} ${affectedNo}`

async function pageOf(reader: Reader, components: readonly StoredComponent[], { after, most }: Step): Promise<Page> {
  const names = new Set(components.flatMap(({ name, origin }) => [name, origin]))
  const ecosystems = new Set(components.flatMap(ecosystemsOf))
  const all = { names: [...names], ecosystems: [...ecosystems].filter((one) => one !== '') }
  const rows = await store.affectedNow(reader, all, { after, most })
  const isLast = rows.length < most
  return { after, upTo: isLast ? Number.MAX_SAFE_INTEGER : rows.at(-1)!.affectedNo, rows, isLast }
}

/**
 * Ecosystems of the advisory entries that can apply to a component: the component's ecosystem, and its kind. Advisories of
 * organizations have the kind as ecosystem.
 */
export const ecosystemsOf = ({ ecosystem, kind }: Pick<StoredComponent, 'ecosystem' | 'kind'>): string[] => [
  ...withAllReleases(ecosystem),
  kind,
]

/** Findings that result from advisory entries, with their severities. */
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
    organization: row.organization,
    state,
    severity: rated.get(row.affectedNo)!,
  }))
}

const schemes: Readonly<Record<string, Scheme>> = { apk: 'apk', deb: 'deb', rpm: 'rpm' }

/** Version order of a component. Returns undefined if the version scheme is unknown. */
export function orderOf({ kind, ecosystem }: { kind: string; ecosystem: string }): VersionOrder | undefined {
  const scheme = schemes[kind] ?? schemeOf(ecosystem)
  return scheme && ((one, other) => compareInstalled(scheme, one, other))
}

/** Severity of each advisory entry. The keys are entry numbers. */
async function severitiesOf(reader: Reader, rows: readonly AffectedRow[]): Promise<Map<number, number>> {
  const withoutSeverity = rows.filter(({ severity }) => severity === 0).map(({ recordNo }) => recordNo)
  const records = new Map<number, store.RecordNames>()
  for (const one of withoutSeverity.length > 0 ? await store.recordsOf(reader, [...new Set(withoutSeverity)]) : []) {
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
