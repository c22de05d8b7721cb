// Queries for each caller and each new binding. They must not slow down if many strangers create bindings for one person.
import { after, before, test } from 'node:test'
import { listGrants } from '#domains/iam/identities/identities.store.ts'
import * as pending from '#domains/iam/roles/pending-bindings.store.ts'
import type { Page } from '#lib/lists/paging.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'
import { plantTree } from '../support/tree.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
  await plantTree(pinfold, { repos: 1, others: 10 })
})
after(() => pinfold[Symbol.asyncDispose]())

const [identity, organization] = ['c'.repeat(40), 'a'.repeat(40)]
const index = 'role_bindings_by_identity_accepted'
/** Searches by identity and acceptance, and inside one organization also by uids. */
const searched = (range = '') =>
  onPostgres
    ? new RegExp(`${index}[^]*Index Cond: .*identity_uid.*accepted = 1`)
    : new RegExp(`${index} \\(identity_uid=\\? AND accepted=\\?${range}`)

function pageOf(desc: boolean, cursor: boolean): Page {
  const after = cursor ? { value: `${organization}/5`, uid: `${organization}/5` } : undefined
  return { order: { field: 'uid', column: 'uid', desc }, after, size: 50, skip: 0, binding: '' }
}

test('reads the bindings of an identity from the index of accepted bindings', async () => {
  const [query] = await queriesOf((reader) => listGrants(reader, identity))
  await checkPlanOf(pinfold, query!, 'grants', [searched()])
})

test('reads pending bindings and the membership of a person from the same index', async () => {
  const queries: [what: string, ask: Parameters<typeof queriesOf>[0], range?: string][] = [
    ['count', (reader) => pending.pendingList.count(reader, [{ identity, organization: '' }]).catch(() => 0)],
    ['of an organization', (reader) => pending.pendingIn(reader, organization, identity), ' AND uid>\\? AND uid<\\?'],
    ['member', (reader) => pending.isMember(reader, organization, identity), ' AND uid>\\? AND uid<\\?'],
  ]
  for (const desc of [false, true]) {
    for (const cursor of [false, true]) {
      const range = cursor ? ` AND uid${desc ? '<' : '>'}\\?` : ''
      queries.push([
        'list',
        (reader) => pending.pendingList.list(reader, [{ identity, organization: '' }], pageOf(desc, cursor)),
        range,
      ])
    }
  }
  for (const [what, ask, range] of queries) {
    const [query] = await queriesOf(ask)
    await checkPlanOf(
      pinfold,
      query!,
      what,
      onPostgres ? [new RegExp(`${index}|role_bindings_by_identity`)] : [searched(range)],
    )
  }
})
