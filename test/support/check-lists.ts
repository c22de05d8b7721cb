// Compares counters and sorted keys of lists with the tables that they are computed from.
import assert from 'node:assert/strict'
import { sql } from '#db/sql.ts'
import type { Pinfold } from './pinfold.ts'
import { auditKind, deletedKind, kinds, type Node, nodesOf, rareKinds } from './tree.ts'

/**
 * Scopes that count a row, as in `src/db/listing.ts` but written independently: the whole server, each group above it, and its
 * direct parent.
 */
function scopesOf(uid: string): string[] {
  const segments = uid.split('/')
  const above = segments.slice(0, -1).map((_, i) => segments.slice(0, i + 1).join('/'))
  return ['/', ...above, `${above.at(-1) ?? '/'}:`]
}

/** Fails unless the counters and the sorted keys of every list match its table. */
export async function checkLists({ app }: Pinfold): Promise<void> {
  const [keys, totals] = [new Set<string>(), new Map<string, number>()]
  const groups = new Set<string>()
  const parents = new Set<string>()
  for (const kind of [...kinds, ...rareKinds, auditKind, deletedKind]) {
    for (const node of await nodesOf({ app } as Pinfold, kind)) {
      if (kind.table === 'groups') groups.add(node.uid)
      if (['groups', 'identity_providers'].includes(kind.table)) parents.add(node.uid)
      const outlives = kind === auditKind || kind === deletedKind || kind.table === 'groups'
      assert.ok(outlives || !node.uid.includes('/') || parents.has(node.parent_uid!), 'has no parent')
      for (const scope of scopesOf(node.uid)) {
        totals.set(`${kind.table} ${scope}`, (totals.get(`${kind.table} ${scope}`) ?? 0) + 1)
        for (const column of new Set(Object.values(kind.orders))) {
          if (column === 'uid') continue
          keys.add(JSON.stringify([`${kind.table}.${column}`, scope, node[column], node.uid, Number(node.id)]))
        }
      }
    }
  }
  for (const tag of await app.db.all<Node & { id: number; shape: number }>(sql`SELECT * FROM tags`)) {
    const kind = `tags.${tag.shape}`
    // A tag has no children, so its repository is its only scope of this kind.
    for (const scope of scopesOf(tag.uid).filter((one) => !one.endsWith(':'))) {
      totals.set(`${kind} ${scope}`, (totals.get(`${kind} ${scope}`) ?? 0) + 1)
      for (const column of ['name', 'digest', 'create_time', 'update_time']) {
        keys.add(JSON.stringify([`${kind}.${column}`, scope, tag[column], tag.uid, Number(tag.id)]))
      }
    }
  }
  for (const uid of groups)
    assert.ok(!uid.includes('/') || groups.has(uid.slice(0, uid.lastIndexOf('/'))), 'is orphaned')

  type Key = { list: string; place: string; value: string; uid: string; id: number }
  const keyed = await app.db.all<Key>(sql`SELECT * FROM list_keys WHERE list NOT LIKE 'audit_log.by %'`)
  const found = keyed.map(({ list, place: scope, value, uid, id }) =>
    JSON.stringify([list, scope, value, uid, Number(id)]),
  )
  assert.deepEqual([...found].sort(), [...keys].sort())

  type Count = { kind: string; scope: string; total: number }
  const counted = await app.db.all<Count>(sql`
    SELECT kind, place AS scope, CAST(sum(total) AS INTEGER) AS total FROM list_counts GROUP BY kind, place`)
  const declared = new Set(app.resources.flatMap((one) => one.kinds))
  assert.deepEqual(
    counted.filter(({ kind }) => !declared.has(kind)),
    [],
    'no resource has this kind',
  )
  const entries = counted.map(({ kind, scope, total }) => [`${kind} ${scope}`, total] as const)
  assert.deepEqual(new Map(entries.filter(([, total]) => total !== 0)), totals)
}
