// Queries of sign-ins, sessions, SCIM and access requests, for any number of people.
import { after, before, test } from 'node:test'
import type { Reader } from '#db/sql.ts'
import * as requests from '#domains/iam/access-requests/access-requests.store.ts'
import * as identities from '#domains/iam/identities/identities.store.ts'
import type { ScimFilter } from '#domains/iam/scim/scim-filter.model.ts'
import * as scim from '#domains/iam/scim/scim-users.store.ts'
import * as families from '#domains/iam/sessions/own-grants.store.ts'
import * as sessions from '#domains/iam/sessions/sessions.store.ts'
import type { Page } from '#lib/lists/paging.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'
import { plantTree } from '../support/tree.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
  await plantTree(pinfold, { repos: 1, others: 10 })
})
after(() => pinfold[Symbol.asyncDispose]())

type Ask = (reader: Reader) => Promise<unknown>
const [identity, organization, provider] = ['c'.repeat(40), 'a'.repeat(40), `${'a'.repeat(40)}/${'1'.repeat(16)}`]
const now = '2026-01-01T00:00:00.000Z'

const pages: Page[] = [false, true].flatMap((desc) =>
  [undefined, { value: `${organization}/5`, uid: `${organization}/5` }].map((after) => {
    return { order: { field: 'uid', column: 'uid', desc }, after, size: 50, skip: 0, binding: '' }
  }),
)

async function check(asks: Record<string, Ask>): Promise<void> {
  for (const [what, ask] of Object.entries(asks)) {
    const queries = await queriesOf((reader) => ask(reader).catch(() => undefined))
    for (const query of queries) await checkPlanOf(pinfold, query, what)
  }
}

test('finds, lists and ends sessions by their indexes', async () => {
  const trusted = ['one', 'two']
  const scopes = [
    { identity, trusted, now },
    { organization, trusted, now },
    { identity, organization, trusted, now },
  ]
  await check({
    'one of a token': (reader) => sessions.findSession(reader, identity),
    'one of a cookie': (reader) => sessions.findByCookie(reader, 'hash'),
    'its family': (reader) => families.findFamily(reader, 'hash'),
    'its ID token': (reader) => sessions.idTokenOf(reader, identity),
    'of a provider': (reader) => sessions.sessionsOfProvider(reader, provider, {}, 200),
    'of a session of a provider': (reader) => sessions.sessionsOfProvider(reader, provider, { sid: 's' }, 200),
    'of a person of a provider': (reader) => sessions.sessionsOfProvider(reader, provider, { identity }, 200),
    'of the settings': (reader) => sessions.unusedSessions(reader, { after: identity, before: now, limit: 200 }),
    'of whom SCIM names': (reader) => sessions.sessionsOfProvider(reader, provider, { externalId: 'e' }, 200),
  })
  for (const scope of scopes) {
    await check({ count: (reader) => sessions.sessionList.count(reader, [scope]) })
    for (const page of pages) await check({ list: (reader) => sessions.sessionList.list(reader, [scope], page) })
  }
})

test('lists and finds access requests by their indexes', async () => {
  const scope = { organization, now }
  await check({
    one: (reader) => requests.findRequest(reader, provider),
    'of a person': (reader) => requests.findRequestOf(reader, organization, identity),
    'all of a person': (reader) => requests.requestsOf(reader, identity),
    count: (reader) => requests.requestList.count(reader, [scope]),
  })
  for (const page of pages) await check({ list: (reader) => requests.requestList.list(reader, [scope], page) })
})

const named: ScimFilter = { kind: 'compare', attribute: 'userName', op: 'eq', value: 'a' }
const position = { createTime: now, id: 'a' }
const withAddress: ScimFilter = {
  kind: 'item',
  part: { kind: 'compare', attribute: 'emails.value', op: 'eq', value: 'a' },
}

test('SCIM finds users by its indexes', () =>
  check({
    one: (reader) => scim.findUser(reader, provider, 'id'),
    page: (reader) => scim.listUsers(reader, provider, { skip: 0, limit: 100 }),
    'of a name': (reader) => scim.lookUpUsers(reader, provider, named),
    'of a name, with an address': (reader) =>
      scim.lookUpUsers(reader, provider, { kind: 'and', parts: [withAddress, named] }),
    slice: (reader) => scim.sliceOf(reader, provider, position, 50),
    'of an address': (reader) => scim.matchesOf(reader, ['a', 'b'], withAddress),
    'of no address': (reader) => scim.matchesOf(reader, ['a', 'b'], { kind: 'not', part: withAddress }),
    'of a page': (reader) => scim.usersOf(reader, provider, ['a', 'b']),
    'without addresses': (reader) => scim.usersWithoutEmails(reader, provider, 200),
    count: (reader) => scim.countUsers(reader, provider),
    standing: (reader) => scim.isActivePerson(reader, provider, 'e'),
    'is anybody there': (reader) => scim.hasProvisioned(reader, provider),
    removals: (reader) => scim.countRemovals(reader, provider),
  }))

test('finds the provider of a person by the uid of the person', () =>
  check({ 'vouched by': (reader) => identities.vouchedBy(reader, identity) }))
