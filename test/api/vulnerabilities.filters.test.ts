// Every filter of the list of advisories against a plain scan of the same data.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  filterName,
  filters,
  importSamples,
  type Sample,
  sampleAdvisory,
  states,
  types,
} from '../support/advisories.ts'
import { assertInvalid } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { type Random, randomFrom } from '../support/random.ts'

const seed = randomInt(2 ** 31)
const random: Random = randomFrom(seed)
const total = 200

let pinfold: Pinfold
let operator: Client
let org: string
let folder: string
let folderOwner: Client
/** The sample advisories with their group. */
let planted: { sample: Sample; group: string }[]

before(async () => {
  pinfold = await startPinfold()
  operator = pinfold.operator
  org = (await pinfold.seed.group()).uid
  folder = (await pinfold.seed.group(org)).uid
  folderOwner = await pinfold.as((await pinfold.seed.member(folder, roleUids.owner)).uid)
  const samples = Array.from({ length: total }, (_, n) => sampleAdvisory(random, n))
  planted = samples.map((sample, n) => ({ sample, group: n % 3 === 0 ? folder : org }))
  for (const group of [org, folder]) {
    const here = planted.filter((one) => one.group === group).map(({ sample }) => sample)
    await importSamples(pinfold, group, here)
  }
})
after(() => pinfold[Symbol.asyncDispose]())

type Filter = [name: string, values: string[]]

const queryOf = (asked: readonly Filter[]) =>
  asked.flatMap(([name, values]) => values.map((value) => `${name}=${encodeURIComponent(value)}`)).join('&')

/** All pages of a list, as public ids in their order. */
async function listed(client: Client, query: string, pageSize = 7): Promise<string[]> {
  const ids: string[] = []
  for (let token = ''; ; ) {
    const path = `/vulnerabilities/v2/advisories?page_size=${pageSize}&${query}&page_token=${token}`
    const { status, body, text } = await client.get(path)
    assert.equal(status, 200, text)
    ids.push(...body.advisories.map((one: Json) => one.advisoryId))
    token = body.nextPageToken
    if (token) continue
    assert.equal(body.totalCount, String(ids.length), query)
    return ids
  }
}

function expected(asked: readonly Filter[], group?: string): string[] {
  const tests = asked.map(([name, values]) => filters[name]!(values))
  return planted
    .filter((one) => group === undefined || one.group === group)
    .filter(({ sample }) => tests.every((test) => test(sample)))
    .map(({ sample }) => sample.advisory.advisoryId as string)
    .sort()
}

async function check(asked: readonly Filter[]): Promise<void> {
  const query = queryOf(asked)
  const told = `seed ${seed}: ${query}`
  assert.deepEqual((await listed(operator, query, 50)).sort(), expected(asked), told)
  assert.deepEqual((await listed(folderOwner, query)).sort(), expected(asked, folder), `${told} in a folder`)
}

/** Some values that exist, and one that does not. */
function valuesOf(name: string): string[] {
  if (name === 'event_types' || name === 'latest_event_type') return types.map(filterName)
  if (name === 'event_review_states') return states.map((state) => `REVIEW_STATE_${state}`)
  if (name === 'query')
    return ['PACKAGE-1', '2024-10', 'cve', '%', '_b', 'github.com/a%_b-3', 'c', 'E-2', 'nothing', '\\']
  const found = planted.flatMap(({ sample: { advisory, origin } }): string[] => {
    if (name === 'origin') return [origin]
    if (name === 'aliases') return advisory.aliases
    if (name.includes('event_')) {
      return (advisory.events as Json[]).map((event) => (name.includes('author') ? event.author : event.reviewer))
    }
    const member = name.replace(/s$/, '').replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    return [advisory[member] ?? '']
  })
  return [...new Set(found), 'nobody'].filter((value) => value !== '')
}

for (const name of Object.keys(filters)) {
  test(`${name} returns what a full scan returns`, async () => {
    const values = valuesOf(name)
    const single = ['origin', 'latest_event_type', 'query'].includes(name)
    for (const value of values.slice(0, 8)) await check([[name, [value]]])
    if (single) return
    for (let round = 0; round < 3; round++) {
      const some = values.filter(() => random.below(3) === 0).slice(0, 40)
      await check([[name, some.length > 0 ? some : values.slice(0, 2)]])
    }
  })
}

test('combines several filters with AND', async () => {
  const names = Object.keys(filters).filter((name) => name !== 'origin')
  for (let round = 0; round < 20; round++) {
    const chosen = names.filter(() => random.below(6) === 0)
    const asked = chosen.map((name): Filter => {
      const values = valuesOf(name)
      const one = values[random.below(values.length)]!
      const several = name === 'query' || name === 'latest_event_type' ? [one] : [one, ...values.slice(0, 3)]
      return [name, [...new Set(several)]]
    })
    await check(asked)
  }
})

test('with an origin, does not search the names of artifacts', async () => {
  const origin = planted[0]!.sample.origin
  const ids = await listed(operator, `origin=${origin}&artifact_names=nobody`)
  assert.deepEqual(ids.sort(), expected([['origin', [origin]]]))
})

test('a filtered list supports each order, ascending and descending', async () => {
  const members = {
    advisory_id: 'advisoryId',
    artifact_name: 'artifactName',
    created_at: 'createTime',
    updateTime: 'updateTime',
  }
  for (const asked of [
    [],
    [['artifact_types', ['apk']]],
    [['query', ['cve']]],
    [['aliases', ['CVE-2024-1001']]],
  ] as Filter[][]) {
    for (const [order, member] of Object.entries(members)) {
      for (const desc of [false, true]) {
        const query = `${queryOf(asked)}&order_by=${order}%20${desc ? 'desc' : 'asc'}`
        const ids = await listed(operator, query, 11)
        const { body } = await operator.get(`/vulnerabilities/v2/advisories?page_size=200&${query}`)
        const keys = body.advisories.map((one: Json) => `${one[member]} ${one.uid}`)
        assert.deepEqual(keys, desc ? keys.toSorted().reverse() : keys.toSorted(), query)
        assert.deepEqual(
          body.advisories.map((one: Json) => one.advisoryId),
          ids.slice(0, 200),
          query,
        )
        assert.deepEqual([...ids].sort(), expected(asked), query)
      }
    }
  }
})

test('a scope limits a filtered list', async () => {
  const asked: Filter = ['artifact_types', ['image']]
  for (const [uidp, group] of [
    [`uidp.children_of=${folder}`, folder],
    [`uidp.children_of=${org}`, org],
    [`uidp.descendants_of=${folder}`, folder],
    [`uidp.descendants_of=${org}`, undefined],
  ] as const) {
    assert.deepEqual((await listed(operator, `${uidp}&${queryOf([asked])}`)).sort(), expected([asked], group), uidp)
  }
  const { body } = await operator.get(`/vulnerabilities/v2/advisories?${queryOf([asked])}`)
  const uids = body.advisories.slice(0, 5).map((one: Json) => one.uid)
  const some = await listed(operator, `uidp.ids=${uids.join(',')}&${queryOf([asked])}`)
  assert.deepEqual(
    some.sort(),
    body.advisories
      .slice(0, 5)
      .map((one: Json) => one.advisoryId)
      .sort(),
  )
  assert.deepEqual(await listed(operator, `uidp.ids=${uids.join(',')}&artifact_types=apk`), [])
})

test('ignores a filter with the value for any, and refuses an unknown value', async () => {
  assert.equal((await listed(operator, 'event_types=EVENT_TYPE_FILTER_UNSPECIFIED')).length, total)
  assert.equal((await listed(operator, 'latest_event_type=EVENT_TYPE_FILTER_UNSPECIFIED')).length, total)
  assertInvalid(
    await operator.get('/vulnerabilities/v2/advisories?event_types=EVENT_TYPE_FILTER_SOLVED'),
    'event_types',
  )
  assertInvalid(await operator.get(`/vulnerabilities/v2/advisories?query=${'x'.repeat(257)}`), 'query')
  const many = Array.from({ length: 1001 }, (_, i) => `A${i}`).join(',')
  assertInvalid(await operator.get(`/vulnerabilities/v2/advisories?aliases=${many}`), 'aliases')
})
