// The data modules of the console: their API requests, and their results.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { Refusal } from '../../console/src/data/api.ts'
import { readNext, readPage } from '../../console/src/data/list.ts'
import { readScoped, whereOf } from '../../console/src/data/scoped.ts'
import type { Json } from '../support/pinfold.ts'

const { fetch } = globalThis
// mock.restoreAll would restore only the first of two mocks of one method.
afterEach(() => {
  globalThis.fetch = fetch
})

function replaceFetch(by: (address: string) => Promise<Response>): void {
  globalThis.fetch = (address) => by(String(address))
}

/** API responses in order, and the requested URLs. */
function answers(...given: Json[]): string[] {
  const asked: string[] = []
  replaceFetch(async (address: string) => {
    asked.push(address)
    const answer = given.shift()
    assert.ok(answer, `nobody expected ${address}`)
    return Response.json(answer)
  })
  return asked
}

test('a page of a list omits the items of earlier pages', async () => {
  const asked = answers({ things: [{ uid: 'a' }], totalCount: '120', nextPageToken: 't' }, {}, { totalCount: '0' }, {})
  assert.deepEqual(await readPage('/things', 'things', {}), { items: [{ uid: 'a' }], total: 120, next: 't' })
  assert.deepEqual(await readPage('/things', 'things', { page: 2 }), { items: [], total: undefined, next: '' })
  assert.deepEqual(await readPage('/things', 'things', { page: 3, size: 10, query: { name: 'a b', none: '' } }), {
    ...{ items: [], total: 0, next: '' },
  })
  await readPage('/things', 'things', { page: 1, size: 10, query: { orderBy: 'name desc' } })
  assert.deepEqual(asked, [
    '/ui/api/things?pageSize=50',
    '/ui/api/things?pageSize=50&skip=50',
    '/ui/api/things?name=a+b&pageSize=10&skip=20',
    '/ui/api/things?orderBy=name+desc&pageSize=10',
  ])
})

test('requests a list without page numbers with the token of the previous page', async () => {
  const asked = answers({ things: [1], nextPageToken: 'a/b' }, { things: [2] })
  const first = await readNext<number>('/things', 'things', { query: { name: 'x' } })
  assert.deepEqual(first, { items: [1], total: undefined, next: 'a/b' })
  assert.deepEqual(await readNext('/things', 'things', { after: first.next, size: 7 }), {
    ...{ items: [2], total: undefined, next: '' },
  })
  assert.deepEqual(asked, ['/ui/api/things?name=x&pageSize=200', '/ui/api/things?pageSize=7&pageToken=a%2Fb'])
})

test('an error has the status, reason and fields of the response, or none of them if the connection is lost', async () => {
  const details = [
    { reason: 'INVALID', metadata: { requestId: 'r1' } },
    { fieldViolations: [{ field: 'name', description: 'is required' }] },
  ]
  replaceFetch(async () => Response.json({ message: 'no', details }, { status: 400 }))
  await assert.rejects(readPage('/things', 'things', {}), (error: Refusal) => {
    const { status, reason, requestId, fields, message } = error
    assert.deepEqual([status, reason, requestId, message], [400, 'INVALID', 'r1', 'no'])
    assert.deepEqual(fields, [{ field: 'name', description: 'is required' }])
    return error instanceof Refusal
  })
  replaceFetch(() => Promise.reject(new TypeError('failed to fetch')))
  await assert.rejects(readPage('/things', 'things', {}), (error: Refusal) => {
    return error instanceof Refusal && error.status === 0 && error.reason === ''
  })
  const signal = AbortSignal.abort(new Error('left'))
  replaceFetch(() => Promise.reject(signal.reason))
  await assert.rejects(readPage('/things', 'things', { signal }), /left/)
})

const org = 'a'.repeat(40)
const [folder, beside] = [`${org}/${'1'.repeat(16)}`, `${org}/${'1'.repeat(15)}2`]
const repo = `${folder}/${'3'.repeat(16)}`
const madeAt = (scope: string) => `${scope}/${'f'.repeat(16)}`

test('shows rules of a scope, above it and below it, but not of a sibling scope', () => {
  for (const [at, expected] of [
    [folder, 'here'],
    [org, 'above'],
    [repo, 'below'],
    [`${repo}/${'4'.repeat(16)}`, 'below'],
    [beside, undefined],
    ['b'.repeat(40), undefined],
    [`${beside}/${'3'.repeat(16)}`, undefined],
    // A name that begins like the scope, but is another group.
    [`${folder}1`, undefined],
    [folder.slice(0, -1), undefined],
  ] as const) {
    assert.equal(whereOf(madeAt(at), folder), expected, at)
  }
  assert.equal(whereOf(madeAt(org), org), 'here')
  assert.equal(whereOf(madeAt(folder), org), 'below')
})

test('rules of a scope are read from the whole organization, page by page, without sibling scopes', async () => {
  const item = (scope: string) => ({ uid: madeAt(scope) })
  const asked = answers(
    { rules: [item(org), item(beside)], nextPageToken: 'two' },
    { rules: [item(repo), item(folder), item('b'.repeat(40))] },
    { rules: [item(folder)] },
  )
  assert.deepEqual(await readScoped('/rules', 'rules', { scope: folder, query: { includeEnded: true } }), {
    items: [item(org), item(repo), item(folder)],
    isCut: false,
  })
  await readScoped('/rules', 'rules', { scope: repo, scopeParam: 'uidp.descendantsOf' })
  assert.deepEqual(asked, [
    `/ui/api/rules?includeEnded=true&scopeUid=${org}&pageSize=200`,
    `/ui/api/rules?includeEnded=true&scopeUid=${org}&pageSize=200&pageToken=two`,
    `/ui/api/rules?uidp.descendantsOf=${org}&pageSize=200`,
  ])
})

test('reads five pages of rules, and sets isCut if there is a sixth', async () => {
  const page = (nextPageToken: string) => ({ rules: [{ uid: madeAt(folder) }], nextPageToken })
  const five = answers(page('2'), page('3'), page('4'), page('5'), page(''))
  const all = await readScoped('/rules', 'rules', { scope: folder })
  assert.deepEqual([five.length, all.items.length, all.isCut], [5, 5, false])
  const more = answers(page('2'), page('3'), page('4'), page('5'), page('6'))
  const cut = await readScoped('/rules', 'rules', { scope: folder })
  assert.deepEqual([more.length, cut.items.length, cut.isCut], [5, 5, true])
})
