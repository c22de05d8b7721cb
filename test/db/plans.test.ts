// Each list and each count uses an index in its own order. SQLite runs on the event loop, so a scan or a sort of a large table
// would stop the server.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql, sql } from '#db/sql.ts'
import { subscriptionFields } from '#domains/events/subscriptions/subscriptions.model.ts'
import { subscriptionList } from '#domains/events/subscriptions/subscriptions.store.ts'
import { accountAssociationFields } from '#domains/iam/accounts/account-associations.model.ts'
import { associationList } from '#domains/iam/accounts/account-associations.store.ts'
import { groupFields } from '#domains/iam/groups/groups.model.ts'
import { groupList } from '#domains/iam/groups/groups.store.ts'
import { identityFields } from '#domains/iam/identities/identities.model.ts'
import { identityList } from '#domains/iam/identities/identities.store.ts'
import { groupMappingFields } from '#domains/iam/identity-providers/external-group-role-mappings.model.ts'
import { mappingList } from '#domains/iam/identity-providers/external-group-role-mappings.store.ts'
import { identityProviderFields } from '#domains/iam/identity-providers/identity-providers.model.ts'
import { providerList } from '#domains/iam/identity-providers/identity-providers.store.ts'
import { groupInviteFields } from '#domains/iam/invites/group-invites.model.ts'
import { inviteList } from '#domains/iam/invites/group-invites.store.ts'
import { roleBindingFields } from '#domains/iam/roles/role-bindings.model.ts'
import { bindingList } from '#domains/iam/roles/role-bindings.store.ts'
import { roleFields } from '#domains/iam/roles/roles.model.ts'
import { roleList } from '#domains/iam/roles/roles.store.ts'
import { upstreamFields } from '#domains/mirrors/follows/upstreams.model.ts'
import { upstreamList } from '#domains/mirrors/follows/upstreams.store.ts'
import { repoFields } from '#domains/registry/repos/repos.model.ts'
import { repoList } from '#domains/registry/repos/repos.store.ts'
import type { Field } from '#lib/fields.ts'
import type { Branch, Page } from '#lib/lists/paging.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'
import { plantTree } from '../support/tree.ts'

let pinfold: Pinfold
let group: string

before(async () => {
  pinfold = await startPinfold()
  group = (await plantTree(pinfold, { repos: 60, others: 20 }))['a/one']!
  // Without table statistics, PostgreSQL estimates that a range of uids costs as much as an equal name. The other tables have few
  // rows.
  if (onPostgres) await pinfold.app.db.tx((tx) => tx.run(sql`ANALYZE repos, identities, roles, role_bindings`))
})
after(() => pinfold[Symbol.asyncDispose]())

type List = {
  table: string
  fields: Readonly<Record<string, Field>>
  list: (reader: Reader, branches: Branch[], page: Page, filter: never) => Promise<unknown>
  count: (reader: Reader, branches: Branch[], filter: never) => Promise<unknown>
  none: object
  filters: Filter[]
}
/** Columns that the search must use, besides the parent if one is given. */
type Filter = { filter: object; by: string[] }

const uid = 'c'.repeat(40)
const names = { none: { name: '' }, filters: [{ filter: { name: 'node1' }, by: ['name'] }] }
const lists: List[] = [
  { table: 'groups', fields: groupFields, ...groupList, ...names },
  {
    table: 'identities',
    fields: identityFields,
    ...identityList,
    none: { name: '', relationshipType: '' },
    filters: [
      { filter: { name: 'node1', relationshipType: '' }, by: ['name'] },
      { filter: { name: '', relationshipType: 'CLAIM_MATCH' }, by: ['relationship_type'] },
      { filter: { name: 'node1', relationshipType: 'CLAIM_MATCH' }, by: ['name', 'relationship_type'] },
    ],
  },
  { table: 'roles', fields: roleFields, ...roleList, ...names },
  {
    table: 'role_bindings',
    fields: roleBindingFields,
    ...bindingList,
    none: { identity: '', group: '', role: '' },
    filters: [
      { filter: { identity: uid, group: '', role: '' }, by: ['identity_uid'] },
      { filter: { identity: '', group: uid, role: '' }, by: ['parent_uid'] },
      { filter: { identity: '', group: '', role: uid }, by: ['role_uid'] },
      { filter: { identity: uid, group: uid, role: '' }, by: ['(?:identity|parent)_uid'] },
      { filter: { identity: '', group: uid, role: uid }, by: ['parent_uid', 'role_uid'] },
      { filter: { identity: uid, group: '', role: uid }, by: ['identity_uid', 'role_uid'] },
      { filter: { identity: uid, group: uid, role: uid }, by: ['identity_uid', 'role_uid'] },
    ],
  },
  { table: 'identity_providers', fields: identityProviderFields, ...providerList, ...names },
  {
    table: 'external_group_role_mappings',
    fields: groupMappingFields,
    ...mappingList,
    none: { provider: '' },
    filters: [{ filter: { provider: uid }, by: ['parent_uid'] }],
  },
  {
    table: 'account_associations',
    fields: accountAssociationFields,
    ...associationList,
    ...names,
  },
  {
    table: 'group_invites',
    fields: groupInviteFields,
    ...inviteList,
    none: { keyId: '' },
    filters: [{ filter: { keyId: 'k' }, by: ['key_id'] }],
  },
  {
    table: 'repos',
    fields: repoFields,
    ...repoList,
    none: { name: undefined },
    filters: ['node1', ''].map((name) => ({ filter: { name }, by: ['name'] })),
  },
  {
    table: 'subscriptions',
    fields: subscriptionFields,
    ...subscriptionList,
    none: {},
    filters: [],
  },
  {
    table: 'upstreams',
    fields: upstreamFields,
    ...upstreamList,
    none: { name: '' },
    filters: [{ filter: { name: 'node1' }, by: ['name'] }],
  },
]

const scopes = (): Record<string, Branch> => ({
  'below everything': { below: '/' },
  'below a group': { below: group },
  'children of a group': { childrenOf: group },
  'children of the top': { childrenOf: '/' },
})

function pageOf(field: string, { column }: Field, desc: boolean, cursor: boolean): Page {
  const after = cursor ? { value: column === 'uid' ? `${group}/5` : 'm', uid: `${group}/5` } : undefined
  return { order: { field, column, desc }, after, size: 50, skip: 0, binding: '' }
}

const checkPlan = (query: Sql, what: string, wanted?: readonly RegExp[]) => checkPlanOf(pinfold, query, what, wanted)

const tableIndex = (table: string, scope: Branch) => {
  if ('childrenOf' in scope) return new RegExp(`${table}_by_parent\\b`)
  return onPostgres ? new RegExp(`${table}_uid_key\\b`) : new RegExp(`sqlite_autoindex_${table}_1\\b`)
}

/** The primary key of list_keys, starting at the page token if there is one. */
function keyIndex(desc: boolean, cursor: boolean): RegExp[] {
  if (onPostgres) {
    const from = `Index Cond: .*list = .*place = .*${cursor ? `ROW\\(.*\\) ${desc ? '<' : '>'} ROW` : ''}`
    return [/list_keys_pkey/, new RegExp(from)]
  }
  const from = cursor ? ` AND \\(value,uid\\)${desc ? '<' : '>'}\\(\\?,\\?\\)` : ''
  return [new RegExp(`SEARCH k USING PRIMARY KEY \\(list=\\? AND place=\\?${from}\\)`)]
}

/**
 * The columns of the index search. PostgreSQL needs statistics to know which of several filters selects few rows. It has none in
 * this test, so one column is enough.
 */
function searchedBy({ by }: Filter, table: string, scope: Branch): RegExp[] {
  const search = onPostgres ? 'Index Cond: .*' : 'SEARCH t USING (COVERING )?INDEX \\w+ \\([^)]*'
  const equals = onPostgres ? ' =' : '=\\?'
  if (onPostgres) return [new RegExp(`${search}\\b(${by.join('|')}|parent_uid)${equals}`)]
  // A key identifies one invitation, an identity has few bindings, and two filters select few rows.
  const few = by.length > 1 || by[0] === 'key_id' || (table === 'role_bindings' && by[0] !== 'role_uid')
  const parent = 'childrenOf' in scope && !few ? ['parent_uid'] : []
  return [...by, ...parent].map((column) => new RegExp(`${search}\\b${column}${equals}`))
}

for (const { table, fields, list, count, none, filters } of lists) {
  test(`lists ${table} in each order from an index`, async () => {
    for (const [name, scope] of Object.entries(scopes())) {
      for (const [field, rules] of Object.entries(fields).filter(([, { sort }]) => sort)) {
        for (const desc of [false, true]) {
          for (const cursor of [false, true]) {
            const page = pageOf(field, rules, desc, cursor)
            const [query] = await queriesOf((reader) => list(reader, [scope], page, none as never))
            const what = `${table} ${name} by ${field}${desc ? ' desc' : ''}${cursor ? ' from a cursor' : ''}`
            const wanted = rules.column === 'uid' ? [tableIndex(table, scope)] : keyIndex(desc, cursor)
            await checkPlan(query!, what, wanted)
            const text = compile(query!, '?')
            assert.ok((text.match(/t\.uid >/g) ?? []).length <= 1 && (text.match(/t\.uid </g) ?? []).length <= 1, text)
          }
        }
      }
    }
  })

  test(`filters ${table} by an index`, async () => {
    for (const [name, scope] of Object.entries(scopes())) {
      for (const one of filters) {
        for (const desc of [false, true]) {
          for (const cursor of [false, true]) {
            const page = pageOf('uid', fields.uid!, desc, cursor)
            const [query] = await queriesOf((reader) => list(reader, [scope], page, one.filter as never))
            const what = `${table} ${name} with ${JSON.stringify(one)}${desc ? ' desc' : ''}`
            await checkPlan(query!, what, searchedBy(one, table, scope))
          }
        }
      }
    }
  })

  test(`counts ${table} from the counters, or from an index with a filter`, async () => {
    const pkey = onPostgres ? /list_counts_pkey/ : /SEARCH list_counts USING PRIMARY KEY \(kind=\? AND place=\?\)/
    for (const [name, scope] of Object.entries(scopes())) {
      const queries = await queriesOf((reader) => count(reader, [scope], none as never))
      assert.equal(queries.length, 1)
      await checkPlan(queries[0]!, `${table} ${name}`, [pkey])
      for (const one of filters) {
        for (const query of await queriesOf((reader) => count(reader, [scope], one.filter as never))) {
          const what = `count of ${table} ${name} with ${JSON.stringify(one)}`
          await checkPlan(query, what, searchedBy(one, table, scope))
        }
      }
    }
  })
}
