// Every order of the lists below /registry/v2/ that are not lists of nodes comes from an index.
import { after, before, test } from 'node:test'
import type { Reader } from '#db/sql.ts'
import { followsBelow } from '#domains/mirrors/follows/follows.store.ts'
import { referrersOf, unpulledIn } from '#domains/policy/digests/digests.store.ts'
import { gateExceptionTable, gateTable } from '#domains/policy/gates/gates.store.ts'
import { pullRuleExceptionTable, pullRuleTable } from '#domains/policy/pull-rules/pull-rules.store.ts'
import { deletionPage, planList } from '#domains/policy/retention/plans.store.ts'
import * as retention from '#domains/policy/retention/retention.store.ts'
import { deletedRepoList } from '#domains/registry/repos/ledgers.store.ts'
import { deletedRepoFields } from '#domains/registry/repos/removals.model.ts'
import { historyFields } from '#domains/registry/tags/tag-history.model.ts'
import { listReported } from '#domains/registry/tags/upstream-history.store.ts'
import { riskTable } from '#domains/scanning/risks/risks.store.ts'
import { signerTable } from '#domains/scanning/signers/signers.store.ts'
import type { Field } from '#lib/fields.ts'
import { changedOrders, createdOrders, exceptionOrders, nameOrder, ruleOrders } from '#lib/lists/orders.ts'
import type { Page } from '#lib/lists/paging.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const organization = 'a'.repeat(40)
const folder = `${organization}/${'1'.repeat(16)}`
const digest = `sha256:${'a'.repeat(64)}`
const time = '2026-03-01T00:00:00.000Z'

type Ask = (reader: Reader, page: Page) => Promise<unknown>
type Asked = { orders: Readonly<Record<string, Field>>; uid?: string; lists: Record<string, Ask> }

/** Lists of a table in each scope. A filter selects rows that have not ended, if rows of the table end. */
function scoped<F>(
  list: { page(reader: Reader, scopes: readonly string[], page: Page, filter: F): Promise<unknown> },
  filters: Record<string, F>,
): Record<string, Ask> {
  const scopes = { everything: ['/'], 'an organization': [organization], 'a folder': [folder] }
  return Object.fromEntries(
    Object.entries(scopes).flatMap(([scope, uids]) => {
      return Object.entries(filters).map(([which, filter]): [string, Ask] => {
        return [`${which} in ${scope}`, (reader, page) => list.page(reader, uids, page, filter)]
      })
    }),
  )
}

const every = { 'all rows': {} }
const ending = { 'live rows': { now: time }, 'all rows': { now: undefined } }
const pair = `1 ${time}`

const asked: Record<string, Asked> = {
  gates: { orders: ruleOrders, lists: scoped(gateTable.list, every) },
  'cooldown policies': { orders: ruleOrders, lists: scoped(pullRuleTable.list, every) },
  'retention rules': { orders: changedOrders, lists: scoped(retention.retentionRuleTable.list, every) },
  'tag rules': { orders: changedOrders, lists: scoped(retention.tagRuleTable.list, every) },
  'retention plans': { orders: exceptionOrders, lists: scoped(planList, every) },
  'exemptions from gates': { orders: exceptionOrders, lists: scoped(gateExceptionTable.list, ending) },
  'exemptions from cooldown policies': { orders: exceptionOrders, lists: scoped(pullRuleExceptionTable.list, ending) },
  'accepted risks': { orders: exceptionOrders, lists: scoped(riskTable.list, ending) },
  'signers of VEX': { orders: { ...exceptionOrders, ...nameOrder }, lists: scoped(signerTable.list, ending) },
  holds: { orders: createdOrders, lists: scoped(retention.holdTable.list, ending) },
  quarantined: { orders: createdOrders, lists: scoped(retention.quarantineTable.list, ending) },
  mirrors: {
    orders: changedOrders,
    lists: {
      'of an organization': (reader, page) => followsBelow(reader, organization, page),
      'of a folder': (reader, page) => followsBelow(reader, folder, page),
    },
  },
  'deleted repos': {
    orders: deletedRepoFields,
    lists: {
      'of everybody': (reader, page) => deletedRepoList.list(reader, [{ below: '/' }], page, { path: '' }),
      'of a group': (reader, page) => deletedRepoList.list(reader, [{ below: folder }], page, { path: '' }),
    },
  },
  'planned deletions': {
    orders: { position: { column: 'position', sort: true } },
    lists: { 'of a plan': (reader, page) => deletionPage(reader, 1, page) },
    uid: '5',
  },
  'history of the upstream': {
    orders: historyFields,
    lists: {
      'of a tag': (reader, page) => listReported(reader, 1, 'latest', {}, page),
      'of all tags': (reader, page) => listReported(reader, 1, undefined, {}, page),
    },
    uid: pair,
  },
  referrers: {
    orders: { digest: { column: 'digest', sort: true } },
    lists: { 'of a digest': (reader, page) => referrersOf(reader, 1, digest, page) },
  },
  'unpulled manifests': {
    orders: { digest: { column: 'digest', sort: true } },
    lists: {
      'of a repo': (reader, { order, after }) => {
        const range = { after: after?.value, desc: order.desc, upTo: undefined, since: time, except: [] }
        return unpulledIn(reader, 1, range, { skip: 0, most: 50 })
      },
    },
  },
}

for (const [what, { orders, lists, uid = `${folder}/5` }] of Object.entries(asked)) {
  test(`lists ${what} in each order from an index`, async () => {
    for (const [field, { column }] of Object.entries(orders).filter(([, { sort }]) => sort)) {
      for (const desc of [false, true]) {
        for (const after of [undefined, { value: column === 'uid' ? uid : 'm', uid }]) {
          const page = { order: { field, column, desc }, after, size: 50, skip: 0, binding: '' }
          for (const [which, ask] of Object.entries(lists)) {
            const name = `${what}, ${which}, by ${field}${desc ? ' desc' : ''}${after ? ' from a cursor' : ''}`
            for (const query of await queriesOf((reader) => ask(reader, page))) await checkPlanOf(pinfold, query, name)
          }
        }
      }
    }
  })
}
