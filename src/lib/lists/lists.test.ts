import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError, notFound } from '../errors.ts'
import { type ListQuery, wholeList } from './lists.ts'

const uidOf = (i: number): string => i.toString(16).padStart(40, '0')
const call = { signal: new AbortController().signal }
const anywhere = { uidp: undefined, id: '' }

/** Lists `total` items, like the list methods of services. */
function having(total: number, asked: ListQuery<unknown>[] = []) {
  return async (_: unknown, query: ListQuery<unknown>) => {
    asked.push(query)
    const { after, size } = query.page
    const first = after === undefined ? 0 : Number.parseInt(after.uid, 16) + 1
    const items = Array.from({ length: Math.min(size, total - first) }, (_, i) => ({ uid: uidOf(first + i) }))
    return { items, total, next: first + items.length < total ? 'more' : '' }
  }
}

test('a whole list contains each item once, read page by page', async () => {
  for (const total of [0, 1, 1000, 2500]) {
    const items = await wholeList(call, anywhere, {}, having(total))
    assert.deepEqual(
      items.map(({ uid }) => uid),
      Array.from({ length: total }, (_, i) => uidOf(i)),
    )
  }
})

test('an error explains that a list is too long to return', async () => {
  await assert.rejects(wholeList(call, anywhere, {}, having(100_001)), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'LIST_TOO_LONG',
  })
})

test('an id filter narrows other filters, and an impossible id sends no query', async () => {
  const asked: ListQuery<unknown>[] = []
  const uidp = { ancestorsOf: '', descendantsOf: uidOf(1), childrenOf: '', inRoot: false, ids: [uidOf(7)] }
  await wholeList(call, { uidp, id: uidOf(7) }, {}, having(1, asked))
  assert.deepEqual(asked[0]!.uidp, uidp)
  assert.deepEqual(await wholeList(call, { uidp, id: uidOf(8) }, {}, having(1, asked)), [])
  assert.deepEqual(await wholeList(call, { uidp: undefined, id: 'nonsense' }, {}, having(1, asked)), [])
  assert.equal(asked.length, 1)
})

test('returns an empty list for a missing or hidden resource, and passes on other errors', async () => {
  const failing = (error: unknown) => wholeList(call, anywhere, {}, async () => Promise.reject(error))
  assert.deepEqual(await failing(notFound('iam.pinfold.dev/Group', 'x')), [])
  await assert.rejects(failing(new AppError('UNAVAILABLE', 'away')), /away/)
})

test('a whole list stops when its call ends', async () => {
  const signal = AbortSignal.abort(new Error('gone'))
  await assert.rejects(wholeList({ signal }, anywhere, {}, having(5)), /gone/)
})
