// Findings of many package lists at once. Lists of images with the same tag share most findings.
import { allOf } from '#db/bulk.ts'
import { list, type Reader, sql } from '#db/sql.ts'
import {
  createParts,
  type FindingRow,
  findingColumns,
  type SuppressedRow,
  suppressedColumns,
  toSuppressed,
} from './finding-parts.store.ts'
import type { Known } from './image-findings.model.ts'

export type SharedKnown = {
  /** Number of distinct findings so far. */
  size(): number
  /**
   * Findings of each list, as in `findKnown` but without locations. Returns undefined if all lists together have more than
   * `most`.
   */
  ofLists(
    lists: readonly number[],
    organizations: readonly string[],
    most: number,
  ): Promise<Map<number, Known[]> | undefined>
}

type Pair = { findingNo: number; ownerNo: number }

/**
 * Cache of findings for the lifetime of a request. One entry serves all lists in which the finding's package has the same owner.
 */
export function createSharedKnown(reader: Reader): SharedKnown {
  const parts = createParts(reader)
  /** The key is the finding and the owner, as the SQL query joins them. */
  const shared = new Map<string, Known>()
  const add = async (keys: readonly string[]): Promise<void> => {
    const pairs = keys.map(pairOf)
    const rows = new Map<number, FindingRow>()
    for (const row of await findingsOf(reader, pairs)) rows.set(row.findingNo, row)
    await parts.need([...rows.values()])
    const suppressed = await suppressedOf(reader, pairs)
    for (const [i, key] of keys.entries()) {
      const { findingNo, ownerNo } = pairs[i]!
      const one = parts.knownOf(rows.get(findingNo)!, { ownerNo, locations: '' })
      shared.set(key, { ...one, suppressed: suppressed.get(key) ?? [] })
    }
  }
  return {
    size: () => shared.size,
    async ofLists(lists, organizations, most) {
      // The query returns one row for each list, because many lists have the same findings.
      const rows = await reader.all<{ listNo: number; pairs: string; total: number }>(sql`
        SELECT p.list_id AS "listNo", count(*) AS total,
               string_agg(CAST(p.id AS TEXT) || ' ' || CAST(p.owner_id AS TEXT), ',') AS pairs
          FROM (SELECT l.list_id, l.owner_id, f.id
                  FROM list_components l
                  JOIN findings f ON f.component_id = l.component_id
                 WHERE l.list_id IN (${list(lists)}) AND f.place IN (${list(['', ...organizations])})
                 LIMIT ${most + 1}) p
         GROUP BY p.list_id`)
      if (rows.reduce((sum, { total }) => sum + total, 0) > most) return undefined
      const byList = rows.map(({ listNo, pairs }) => ({ listNo, keys: pairs.split(',') }))
      const fresh = new Set<string>()
      for (const { keys } of byList) for (const key of keys) if (!shared.has(key)) fresh.add(key)
      if (fresh.size > 0) await add([...fresh])
      const found = new Map<number, Known[]>(lists.map((listNo) => [listNo, []]))
      for (const { listNo, keys } of byList) {
        const all = keys.map((key) => shared.get(key)!)
        found.set(
          listNo,
          all.sort((one, other) => one.findingNo - other.findingNo),
        )
      }
      return found
    },
  }
}

const keyOf = ({ findingNo, ownerNo }: Pair): string => `${findingNo} ${ownerNo}`

function pairOf(key: string): Pair {
  const [findingNo, ownerNo] = key.split(' ')
  return { findingNo: Number(findingNo), ownerNo: Number(ownerNo) }
}

async function findingsOf(reader: Reader, pairs: readonly Pair[]): Promise<FindingRow[]> {
  const numbers = [...new Set(pairs.map(({ findingNo }) => findingNo))]
  return allOf(reader, numbers, (some) => sql`SELECT ${findingColumns} FROM findings f WHERE f.id IN (${list(some)})`)
}

/** Suppressions by finding and owning package. */
async function suppressedOf(reader: Reader, pairs: readonly Pair[]) {
  const owned = new Set(pairs.filter(({ ownerNo }) => ownerNo !== 0).map(({ findingNo }) => findingNo))
  const suppressed = (some: readonly number[]) => sql`
    SELECT ${suppressedColumns} FROM suppressions s JOIN components c ON c.id = s.owner_id
     WHERE s.finding_id IN (${list(some)}) ORDER BY s.finding_id, s.owner_id, s.id`
  const rows = await allOf<SuppressedRow, number>(reader, [...owned], suppressed)
  return Map.groupBy(rows.map(toSuppressed), keyOf)
}
