// Finds package lists by vulnerability or package, and reads the content of a list.

import { allOf } from '#db/bulk.ts'
import { pageTail, pastCursor } from '#db/listing-beyond.ts'
import { join, list, type Reader, sql } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { Page, Step } from '#lib/lists/paging.ts'
import type { ListKey, StoredComponent } from '../lists/lists.model.ts'
import { componentColumns } from '../lists/lists.store.ts'
import type { NamedRecord } from '../records/records.model.ts'
import { type NamedRow, namedColumns, toNamed } from '../records/records.store.ts'

/** A package list. `isOver` is true if more findings exist than are stored for one list. */
export type NamedList = {
  listNo: number
  key: ListKey
  matchTime: string
  isOver: boolean
  /** Ecosystems in their stored form, which is JSON. Empty for lists of earlier releases. */
  ecosystems: string
}

type ListRow = Omit<NamedList, 'key' | 'isOver'> & {
  hash: string
  id: string
  version: string
  isOver: number
}

const listColumns = sql`
  l.id AS "listNo", l.hash, l.distribution AS id, l.distribution_version AS version, l.match_time AS "matchTime",
  l.over_limit AS "isOver", l.ecosystems`

const toList = ({ hash, id, version, isOver, ...row }: ListRow): NamedList => ({
  ...{ ...row, key: { hash, distribution: { id, version } }, isOver: isOver === 1 },
})

/** Text that is different for each package list. */
export const listKeyText = ({ hash, distribution: { id, version } }: ListKey): string =>
  JSON.stringify([hash, id, version])

/** Distinct sets of ecosystems of all lists in their stored form, at most `most`. */
export async function storedEcosystems(reader: Reader, most: number): Promise<string[]> {
  const rows = await reader.all<{ ecosystems: string }>(sql`
    SELECT DISTINCT l.ecosystems FROM component_lists l ORDER BY l.ecosystems LIMIT ${most}`)
  return rows.map(({ ecosystems }) => ecosystems)
}

export async function listsOf(reader: Reader, numbers: readonly number[]): Promise<NamedList[]> {
  const rows = await reader.all<ListRow>(sql`
    SELECT ${listColumns} FROM component_lists l WHERE l.id IN (${list(numbers)})`)
  return rows.map(toList)
}

/** Package lists with these hashes, in any distribution. */
export async function listsHashed(reader: Reader, hashes: readonly string[]): Promise<NamedList[]> {
  const hashed = (some: readonly string[]) => sql`
    SELECT ${listColumns} FROM component_lists l WHERE l.hash IN (${list(some)})`
  return (await allOf<ListRow, string>(reader, hashes, hashed)).map(toList)
}

/** Numbers of all package lists from `from` on, in order. */
export async function listsFrom(reader: Reader, from: number, most: number): Promise<number[]> {
  const rows = await reader.all<{ listNo: number }>(sql`
    SELECT id AS "listNo" FROM component_lists WHERE id >= ${from} ORDER BY id LIMIT ${most}`)
  return rows.map(({ listNo }) => listNo)
}

/** Package lists after `after` that were not compared yet, or with more findings than are stored, in order. */
export async function incompleteLists(reader: Reader, after: number, most: number): Promise<NamedList[]> {
  const rows = await reader.all<ListRow>(sql`
    SELECT * FROM (SELECT ${listColumns} FROM component_lists l
                    WHERE l.match_time = '' AND l.id > ${after} ORDER BY l.id LIMIT ${most}) AS matches
    UNION ALL
    SELECT * FROM (SELECT ${listColumns} FROM component_lists l
                    WHERE l.over_limit = 1 AND l.id > ${after} ORDER BY l.id LIMIT ${most}) AS matches`)
  const lists = new Map(rows.map((row) => [row.listNo, toList(row)]))
  return [...lists.values()].sort((one, other) => one.listNo - other.listNo).slice(0, most)
}

const componentsAtOnce = 50

/** The first package lists from `from` on that contain one of the components, in order. */
export async function listsWithAny(
  reader: Reader,
  components: readonly number[],
  from: number,
  most: number,
): Promise<number[]> {
  const found = new Set<number>()
  for (const some of chunks(components, componentsAtOnce)) {
    // Lists over the limit are a separate range of the index, so each component has two queries.
    const each = some.flatMap((one) =>
      [0, 1].map(
        (held) => sql`
        SELECT * FROM (SELECT list_id AS "listNo" FROM list_components
                        WHERE component_id = ${one} AND held = ${held} AND list_id >= ${from}
                        ORDER BY component_id, held, list_id LIMIT ${most}) AS matches`,
      ),
    )
    for (const { listNo } of await reader.all<{ listNo: number }>(join(each, ' UNION ALL '))) found.add(listNo)
  }
  return [...found].sort((one, other) => one - other).slice(0, most)
}

/**
 * Some components with an open finding of the vulnerability. The finding is shared, or belongs to one of the organizations.
 * Without `organizations`, the finding can belong to any organization.
 */
export async function componentsWith(
  reader: Reader,
  name: string,
  organizations: readonly string[] | undefined,
  most: number,
): Promise<number[]> {
  const counts = organizations ? sql`AND f.place IN (${list(['', ...organizations])})` : sql``
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT DISTINCT f.component_id AS "componentNo"
      FROM vulnerability_record_names n
      JOIN affected_packages a ON a.record_no = n.record_no
      JOIN findings f ON f.affected_id = a.id
     WHERE n.name = ${name} AND f.gone_time = '' ${counts} LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

/** Some components with an open finding of unknown severity. The finding is shared, or belongs to one of the organizations. */
export async function componentsUnrated(
  reader: Reader,
  organizations: readonly string[] | undefined,
  most: number,
): Promise<number[]> {
  const counts = organizations ? sql`AND f.place IN (${list(['', ...organizations])})` : sql``
  const rows = await reader.all<{ componentNo: number }>(sql`
    SELECT DISTINCT f.component_id AS "componentNo" FROM findings f
     WHERE f.gone_time = '' AND f.state = 1 AND f.severity = 0 ${counts} LIMIT ${most}`)
  return rows.map(({ componentNo }) => componentNo)
}

/** Open findings of unknown severity in a list. The findings are shared, or belong to `organization`. */
export async function unratedInList(
  reader: Reader,
  listNo: number,
  organization: string,
  most: number,
): Promise<{ findingNo: number }[]> {
  return reader.all<{ findingNo: number }>(sql`
    SELECT f.id AS "findingNo" FROM list_components l JOIN findings f ON f.component_id = l.component_id
     WHERE l.list_id = ${listNo} AND f.gone_time = '' AND f.state = 1 AND f.severity = 0 AND f.place = ${organization}
     LIMIT ${most}`)
}

/** Finding of a vulnerability in a package of a list. */
export type FoundIn = {
  component: StoredComponent
  organization: string
  state: number
  severity: number
  /** True if the distribution says that its package is not affected. */
  isSuppressed: boolean
  record: NamedRecord
}

/**
 * Open findings of a vulnerability in a list, at most `most`. The findings are shared, or belong to `organization`.
 * Findings that are not suppressed come first, then certain ones, then those with the highest severity.
 */
export async function foundInList(
  reader: Reader,
  listNo: number,
  { name, organization }: { name: string; organization: string },
  most: number,
): Promise<FoundIn[]> {
  type Row = Omit<FoundIn, 'component' | 'isSuppressed' | 'record'> &
    StoredComponent &
    NamedRow & { suppressed: number }
  const rows = await reader.all<Row>(sql`
    SELECT f.place AS organization, f.state, f.severity, ${componentColumns}, ${namedColumns},
           CASE WHEN EXISTS (SELECT 1 FROM suppressions s WHERE s.finding_id = f.id AND s.owner_id = l.owner_id
                                AND s.until_time = '') THEN 1 ELSE 0 END AS suppressed
      FROM list_components l
      JOIN findings f ON f.component_id = l.component_id AND f.gone_time = ''
      JOIN affected_packages a ON a.id = f.affected_id
      JOIN vulnerability_record_names n ON n.record_no = a.record_no AND n.name = ${name}
      JOIN vulnerability_records r ON r.id = a.record_no
      JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND f.place = ${organization}
     ORDER BY suppressed, f.state, CASE f.severity WHEN 0 THEN 1.5 WHEN 5 THEN 0 ELSE f.severity END DESC, f.id
     LIMIT ${most}`)
  return rows.map(({ organization: of, state, severity, suppressed, recordId, aliases, upstream, ...component }) => ({
    ...{ component, organization: of, state, severity, isSuppressed: suppressed === 1 },
    record: toNamed({ recordId, aliases, upstream }),
  }))
}

export type ListedComponent = StoredComponent & { listNo: number; locations: string[] }

type EntryRow = StoredComponent & { listNo: number; locations: string }

const toEntry = (row: EntryRow): ListedComponent => ({
  ...row,
  locations: row.locations === '' ? [] : (JSON.parse(row.locations) as string[]),
})

/** One page of the packages of a list, in order. The package or its source package has the given name. */
export async function namedInList(
  reader: Reader,
  listNo: number,
  name: string,
  { after, most }: Step,
): Promise<ListedComponent[]> {
  const rows = await reader.all<EntryRow>(sql`
    SELECT l.list_id AS "listNo", l.locations, ${componentColumns}
      FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} AND (c.name = ${name} OR c.origin = ${name})
     ORDER BY l.component_id LIMIT ${most}`)
  return rows.map(toEntry)
}

/** One page of the packages of a list by number or by name, and one more row. */
export async function componentPage(reader: Reader, listNo: number, page: Page): Promise<ListedComponent[]> {
  const { value: name = '', uid: number = '0' } = page.after ?? {}
  const [keys, values] =
    page.order.field === 'name'
      ? [
          [sql`c.name`, sql`l.component_id`],
          [name, Number(number)],
        ]
      : [[sql`l.component_id`], [Number(number)]]
  const rows = await reader.all<EntryRow>(sql`
    SELECT l.list_id AS "listNo", l.locations, ${componentColumns}
      FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND ${pastCursor(page, keys, values)} ${pageTail(page, keys)}`)
  return rows.map(toEntry)
}

/** One page of the packages of a list after the package `after`, in order. */
export async function componentsIn(reader: Reader, listNo: number, { after, most }: Step): Promise<ListedComponent[]> {
  const rows = await reader.all<EntryRow>(sql`
    SELECT l.list_id AS "listNo", l.locations, ${componentColumns}
      FROM list_components l JOIN components c ON c.id = l.component_id
     WHERE l.list_id = ${listNo} AND l.component_id > ${after} ORDER BY l.component_id LIMIT ${most}`)
  return rows.map(toEntry)
}
