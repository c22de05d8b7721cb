// Hierarchy with a few resources of every kind, and their rows from the database.
import { ident, sql } from '#db/sql.ts'
import type { Answer, Client, Json, Pinfold } from './pinfold.ts'
import { roleUids } from './pinfold.ts'

export type Kind = { plural: string; path: string; table: string; orders: Record<string, string> }

const timed = { created_at: 'create_time', updated_at: 'update_time' }
const named = { uid: 'uid', name: 'name', ...timed }

/** All lists: the member of the answer, the path, the table, and the orders with their columns. */
export const kinds: readonly Kind[] = [
  { plural: 'groups', path: '/iam/v2/groups', table: 'groups', orders: named },
  { plural: 'identities', path: '/iam/v2/identities', table: 'identities', orders: named },
  { plural: 'roles', path: '/iam/v2/roles', table: 'roles', orders: named },
  { plural: 'roleBindings', path: '/iam/v2/roleBindings', table: 'role_bindings', orders: { uid: 'uid', ...timed } },
  { plural: 'repos', path: '/registry/v2/repos', table: 'repos', orders: named },
]

/** The audit log. Its entries cannot be created, and its order is fixed. */
export const auditKind: Kind = {
  plural: 'auditEntries',
  path: '/events/v2/audit',
  table: 'audit_log',
  orders: { created_at: 'create_time' },
}

/** Deleted repositories. They cannot be created either. */
export const deletedKind: Kind = {
  plural: 'deletedRepos',
  path: '/registry/v2/deletedRepos',
  table: 'deleted_repos',
  orders: { delete_time: 'delete_time' },
}

const provided = '/iam/v2/identityProviders'
const unchanging = { uid: 'uid', created_at: 'create_time', updated_at: 'create_time' }

/** Lists whose resources exist only in some groups, or below a parent that is not a group. */
export const rareKinds: readonly Kind[] = [
  { plural: 'identityProviders', path: provided, table: 'identity_providers', orders: named },
  {
    plural: 'externalGroupRoleMappings',
    path: '/iam/v2/externalGroupRoleMappings',
    table: 'external_group_role_mappings',
    orders: unchanging,
  },
  { plural: 'groupInvites', path: '/iam/v2/groupInvites', table: 'group_invites', orders: unchanging },
  { plural: 'accountAssociations', path: '/iam/v2/accountAssociations', table: 'account_associations', orders: named },
]

export type Node = Record<string, string> & { uid: string }

/** All resources of a kind, in no particular order. */
export function nodesOf(pinfold: Pinfold, kind: Kind): Promise<Node[]> {
  return pinfold.app.db.all<Node>(sql`SELECT * FROM ${ident(kind.table)}`)
}

/** Sorts by a column, and then by uid. `desc` reverses both. */
export function sorted(nodes: readonly Node[], column: string, desc = false): Node[] {
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  const ascending = [...nodes].sort((a, b) => compare(a[column]!, b[column]!) || compare(a.uid, b.uid))
  return desc ? ascending.reverse() : ascending
}

/**
 * Creates the organization `a` with `a/one`, `a/one/deep` and `a/two`, and the organization `b` with `b/one`. Each group has
 * resources of every kind.
 */
export async function plantTree(
  { seed }: Pinfold,
  perGroup: { repos: number; others: number },
): Promise<Record<string, string>> {
  const groupUids: Record<string, string> = {}
  for (const path of ['a', 'b', 'a/one', 'a/two', 'b/one', 'a/one/deep']) {
    const above = path.includes('/') ? groupUids[path.slice(0, path.lastIndexOf('/'))]! : ''
    groupUids[path] = (await seed.group(above, { name: `group ${path.at(-1)}` })).uid
  }
  const roles = [roleUids.viewer, roleUids.console_viewer]
  const times = (count: number, plant: (i: number) => Promise<unknown>) =>
    Array.from({ length: count }, (_, i) => plant(i))
  // All groups have resources with the same names, so lists in the order of names have ties.
  const plantings = Object.values(groupUids).flatMap((group) => [
    ...times(perGroup.repos, (i) => seed.repo(group, { name: `node${i}` })),
    ...times(perGroup.others, (i) => seed.role(group, ['repo.list'], { name: `node${i}` })),
    ...times(perGroup.others, async (i) => {
      const identity = await seed.identity(group, { name: `node${i % 7}` })
      await seed.binding(group, identity.uid, roles[i % 2]!)
    }),
  ])
  await Promise.all(plantings)
  return groupUids
}

/** Reads all pages of a list. `between` runs after each page. */
export async function walk(
  client: Client,
  { path, plural }: Kind,
  query: string,
  between: () => Promise<unknown> = async () => {},
): Promise<{ uids: string[]; totals: string[]; pages: number }> {
  const uids: string[] = []
  const totals: string[] = []
  for (let pages = 1, token = ''; ; pages++) {
    const answer: Answer = await client.get(`${path}?${query}&page_token=${token}`)
    if (answer.status !== 200) throw new Error(`${path}?${query} failed: ${answer.text}`)
    uids.push(...(answer.body[plural] as Json[]).map(({ uid }) => uid as string))
    totals.push(answer.body.totalCount)
    token = answer.body.nextPageToken
    if (!token) return { uids, totals, pages }
    await between()
  }
}
