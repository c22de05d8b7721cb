// Tables of nodes, with one row for each node. Nodes are found by their uids and shown in lists.
import { chunks } from '#lib/chunks.ts'
import { camelCase } from '#lib/fields.ts'
import { parentOf } from '#lib/uid.ts'
import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from './listing.ts'
import { queueForSearch, type SearchSource } from './search-queue.ts'
import { ident, join, list, type Reader, type Sql, sql, type Tx, type Value } from './sql.ts'

/**
 * Storage of one kind of node. Lists can be sorted by the columns in `sorted`. `filters` maps each member of a filter to its
 * column; an empty filter matches every node. No two nodes have the same values in the columns `unique`.
 */
export type NodeTable<K extends string, F extends string, N> = Omit<Listing, 'kind'> & {
  sorted: readonly K[]
  filters: Readonly<Record<F, string>>
  unique?: readonly string[]
  search?: NodeSearch<N>
}

/** Table of the nodes for the search. The index is updated after a change of the values that `terms` returns. */
export type NodeSearch<N> = { source: SearchSource; terms(node: N): readonly (string | boolean)[] }

/** Like NodeTable, for nodes whose names are unique among their siblings. */
export const namedNodes = {
  sorted: ['name', 'create_time', 'update_time'],
  filters: { name: 'name' },
  unique: ['parent_uid', 'name'],
} as const

type Member<K extends string> = K extends `${infer A}_${infer B}` ? `${A}${Capitalize<Member<B>>}` : K
/** Members of a node that its lists are sorted by. */
type Listed<K extends string> = { uid: string } & { [key in Member<K>]: string }

/** Statements that all kinds of nodes need. `values` returns the values of the columns. */
export function nodeTable<
  Row,
  T extends Listed<K>,
  K extends string,
  F extends string,
  N extends Listed<K> = Listed<K>,
>({ sorted, filters, unique = [], search, ...stored }: NodeTable<K, F, N>, fromRow: (row: Row) => T) {
  const { table } = stored
  const listing: Listing = { kind: table, ...stored }
  const rows = sql`SELECT ${stored.columns} FROM ${ident(table)} t ${stored.join ?? sql``}`
  const columnsOf = Object.entries(filters) as [F, string][]

  const keysOf = (node: Listed<K>): Keys =>
    Object.fromEntries(sorted.map((column) => [column, (node as Record<string, string>)[camelCase(column)]!]))

  function where(filter: Readonly<Record<F, string>>): Sql[] {
    return columnsOf.flatMap(([member, column]) => {
      return filter[member] === '' ? [] : [sql`${ident(`t.${column}`)} = ${filter[member]}`]
    })
  }

  const hasNewTerms = (before: N, after: N): boolean => {
    const [from, to] = [search?.terms(before), search?.terms(after)]
    return from?.some((value, i) => value !== to![i]) ?? false
  }

  return {
    list: nodeList(listing, fromRow, where),
    listing,
    keysOf,

    async find(reader: Reader, uid: string): Promise<T | undefined> {
      const row = await reader.get<Row>(sql`${rows} WHERE t.uid = ${uid}`)
      return row && fromRow(row)
    },

    /** Nodes with these uids, by uid. Missing nodes are left out. */
    async byUid(reader: Reader, uids: readonly string[]): Promise<Map<string, T>> {
      const found = new Map<string, T>()
      for (const some of chunks([...new Set(uids)], 500)) {
        for (const row of await reader.all<Row>(sql`${rows} WHERE t.uid IN (${list(some)})`)) {
          const node = fromRow(row)
          found.set(node.uid, node)
        }
      }
      return found
    },

    /** Inserts a node. Returns false if another node has the same unique values. */
    async insert(tx: Tx, node: N, values: Readonly<Record<string, Value>>): Promise<boolean> {
      const all: Record<string, Value> = { uid: node.uid, parent_uid: parentOf(node.uid), ...values }
      const row = await tx.get<{ id: number }>(sql`
        INSERT INTO ${ident(table)} (${columnList(Object.keys(all))})
        VALUES (${list(Object.values(all))})
            ${unique.length === 0 ? sql`` : sql`ON CONFLICT (${columnList(unique)}) DO NOTHING`}
        RETURNING id`)
      if (!row) return false
      await addToLists(tx, table, node.uid, row.id, keysOf(node))
      if (search) await queueForSearch(tx, search.source, row.id)
      return true
    },

    /** Updates a node. Returns false if a sibling already has the new name and names are unique. */
    async update(tx: Tx, before: N, after: N, values: Readonly<Record<string, Value>>): Promise<boolean> {
      const [from, to] = [keysOf(before), keysOf(after)]
      if (unique.includes('name') && from.name !== to.name) {
        const siblings = sql`SELECT 1 AS found FROM ${ident(table)} WHERE parent_uid = ${parentOf(before.uid)}`
        if (await tx.get(sql`${siblings} AND name = ${to.name!}`)) return false
      }
      const changes = Object.entries(values).map(([column, value]) => sql`${ident(column)} = ${value}`)
      const row = await tx.get<{ id: number }>(sql`
        UPDATE ${ident(table)} SET ${join(changes, ', ')} WHERE uid = ${before.uid} RETURNING id`)
      await moveInLists(tx, table, before.uid, from, to)
      if (search && row && hasNewTerms(before, after)) await queueForSearch(tx, search.source, row.id)
      return true
    },

    /** Deletes a node. Returns false if it was already deleted. */
    async delete(tx: Tx, node: Listed<K>): Promise<boolean> {
      const row = await tx.get<{ id: number }>(sql`
        DELETE FROM ${ident(table)} WHERE uid = ${node.uid} RETURNING id`)
      if (!row) return false
      if (search) await queueForSearch(tx, search.source, row.id)
      await removeFromLists(tx, table, node.uid, keysOf(node))
      return true
    },
  }
}

function columnList(columns: readonly string[]): Sql {
  return join(columns.map(ident), ', ')
}
