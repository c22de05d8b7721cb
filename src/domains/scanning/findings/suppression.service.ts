// Suppresses findings in a language package that a package of the distribution installed. If the distribution states that its
// package is fixed or not affected, the finding is suppressed, whatever the version.
import { withAllReleases } from '#contents/ecosystems.ts'
import { isCleared, verdictOf } from '#contents/match.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { StoredComponent } from '../lists/lists.model.ts'
import { type NamedRecord, vulnerabilityIds } from '../records/records.model.ts'
import { orderOf } from './compare.service.ts'
import * as store from './suppressions.store.ts'

/** Stored and expected suppressions of the findings in some pairs of packages. */
export type Suppressed = { open: (store.Suppression & { id: number })[]; wanted: store.Suppression[] }

/**
 * Updates the suppressions of at most `most` findings after `after` by the current advisories. Returns the start of the next
 * page, or undefined at the end.
 */
export async function suppress(
  tx: Tx,
  pairs: readonly store.OwnedPair[],
  { now, ...page }: { after: store.FoundCursor | undefined; most: number; now: string },
): Promise<store.FoundCursor | undefined> {
  const found = await store.foundIn(tx, [...new Set(pairs.map(({ componentNo }) => componentNo))], page)
  const { open, wanted } = await suppressedOf(tx, pairs, found)
  const stays = new Set(wanted.map(keyOf))
  const there = new Set(open.map(keyOf))
  const ended = open.filter((one) => !stays.has(keyOf(one)))
  const begun = wanted.filter((one) => !there.has(keyOf(one)))
  const ids = ended.map(({ id }) => id)
  await store.endSuppressions(tx, ids, now)
  await store.beginSuppressions(tx, begun, now)
  return found.length < page.most ? undefined : found.at(-1)
}

/** Describes suppressions that are missing, and stored suppressions without a reason. */
export async function suppressionDifferences(reader: Reader, componentNo: number): Promise<string[]> {
  const differences: string[] = []
  for (let owner: number | undefined = 0; owner !== undefined; ) {
    const pairs: store.OwnedPair[] = await store.pairsOfComponent(reader, componentNo, {
      after: owner,
      most: pairsAtOnce,
    })
    for (let after: store.FoundCursor | undefined; pairs.length > 0; ) {
      const found: store.FoundIn[] = await store.foundIn(reader, [componentNo], { after, most: findingsAtOnce })
      const { open, wanted } = await suppressedOf(reader, pairs, found)
      const [stored, expected] = [new Set(open.map(keyOf)), new Set(wanted.map(keyOf))]
      differences.push(
        ...[...expected].flatMap((key) => (stored.has(key) ? [] : [`missing suppression: ${key}`])),
        ...[...stored].flatMap((key) => (expected.has(key) ? [] : [`suppression without a reason: ${key}`])),
      )
      after = found.at(-1)
      if (found.length < findingsAtOnce) break
    }
    owner = pairs.length < pairsAtOnce ? undefined : pairs.at(-1)!.ownerNo
  }
  return differences
}

const pairsAtOnce = 16
const findingsAtOnce = 500

const keyOf = ({ findingNo, ownerNo, source, record }: store.Suppression): string =>
  `finding ${findingNo} in package ${ownerNo} by ${source} ${record}`

async function suppressedOf(
  reader: Reader,
  pairs: readonly store.OwnedPair[],
  found: readonly store.FoundIn[],
): Promise<Suppressed> {
  if (found.length === 0) return { open: [], wanted: [] }
  const isAsked = new Set(pairs.map(({ componentNo, ownerNo }) => `${componentNo} ${ownerNo}`))
  const componentOf = new Map(found.map(({ findingNo, componentNo }) => [findingNo, componentNo]))
  const findingNos = found.map(({ findingNo }) => findingNo)
  const all = await store.suppressedNow(reader, findingNos)
  const open = all.filter(({ findingNo, ownerNo }) => isAsked.has(`${componentOf.get(findingNo)} ${ownerNo}`))
  const wanted: store.Suppression[] = []
  const owners = await store.componentsOf(reader, [...new Set(pairs.map(({ ownerNo }) => ownerNo))])
  for (const owner of owners) {
    const owned = new Set(pairs.filter(({ ownerNo }) => ownerNo === owner.componentNo).map((one) => one.componentNo))
    const those = found.filter(({ componentNo }) => owned.has(componentNo))
    const ids = [...new Set(those.flatMap(({ record }) => namesOf(record)))]
    const packages = { names: [owner.name, owner.origin], ecosystems: withAllReleases(owner.ecosystem) }
    const entries = owner.ecosystem === '' ? [] : await store.advisoryEntriesAbout(reader, packages, ids)
    for (const { findingNo, record } of those) {
      const by = clearedBy(owner, record, entries)
      if (by) wanted.push({ findingNo, ownerNo: owner.componentNo, source: by.source, record: by.record.id })
    }
  }
  return { open, wanted }
}

const namesOf = ({ id, aliases, upstream }: NamedRecord): string[] => [...new Set([id, ...aliases, ...upstream])]

/**
 * Advisory entry that states that the package has none of the vulnerabilities of the record. Returns the first such entry by
 * name, or undefined.
 */
function clearedBy(
  owner: StoredComponent,
  record: NamedRecord,
  entries: readonly store.AdvisoryEntry[],
): store.AdvisoryEntry | undefined {
  const ids = vulnerabilityIds(record)
  const order = orderOf(owner)
  const clearing = ids.map((id) => {
    // If a record is about several vulnerabilities, its other names belong to none of these vulnerabilities.
    const names = new Set(ids.length > 1 ? [id] : namesOf(record))
    const about = entries.filter((one) => namesOf(one.record).some((name) => names.has(name)))
    if (about.some((one) => verdictOf(owner, one, order) !== 'clear')) return undefined
    return about.filter((one) => isCleared(owner, one, order)).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))[0]
  })
  return clearing.every((one) => one !== undefined) ? clearing[0] : undefined
}

const nameOf = ({ source, record }: store.AdvisoryEntry): string => `${source} ${record.id}`
