// Client that knows only the conventions that all lists share.
import assert from 'node:assert/strict'
import { assertInvalid, ok } from './expect.ts'
import type { Client, Json } from './pinfold.ts'

/** A list, and the member of its answers that contains the items. `query` has the filters of the list. */
export type Listing = { path: string; member: string; query?: string }

const hrefOf = ({ path, query = '' }: Listing, more: string) => `${path}?${[query, more].filter(Boolean).join('&')}`

/** Reads all items in pages of `size` items. All pages must have the same total, which is the number of items. */
export async function walkAll(client: Client, list: Listing, { order = '', size = 1, skip = 0 } = {}): Promise<Json[]> {
  const items: Json[] = []
  let pageToken = ''
  for (let page = 0; ; page++) {
    assert.ok(page < 200, `${list.path} does not end`)
    const first = pageToken === ''
    const asked = new URLSearchParams({ page_size: String(size), page_token: pageToken })
    if (order !== '') asked.set('order_by', order)
    if (first && skip > 0) asked.set('skip', String(skip))
    const answer = ok(await client.get(hrefOf(list, asked.toString())))
    assert.equal(answer.skipped, first ? skip : 0, list.path)
    const some = (answer[list.member] ?? []) as Json[]
    assert.ok(some.length <= size, list.path)
    items.push(...some)
    pageToken = answer.nextPageToken ?? ''
    if (pageToken === '') {
      assert.equal(answer.totalCount, String(items.length + skip), `${list.path} ${order}`)
      return items
    }
  }
}

/** Fields for order_by, read from the error for an unknown field. */
export async function ordersOf(client: Client, list: Listing): Promise<string[]> {
  const wrong = await client.get(hrefOf(list, 'order_by=no_such_field'))
  assertInvalid(wrong, 'order_by')
  const [{ description }] = wrong.body.details[1].fieldViolations
  return /must name one of: (.*)$/.exec(description)?.[1]?.split(', ') ?? []
}

/** Fails unless the list keeps all conventions, and has at least `least` items. */
export async function checkList(client: Client, list: Listing, least: number): Promise<void> {
  const all = await walkAll(client, list)
  assert.ok(all.length >= least, `${list.path} has ${all.length} items`)
  assert.deepEqual(await walkAll(client, list, { size: 200 }), all, list.path)
  const skipped = await walkAll(client, list, { skip: 1 })
  assert.deepEqual(skipped, all.slice(1), `${list.path} with skip`)
  for (const order of await ordersOf(client, list)) {
    const up = await walkAll(client, list, { order })
    assert.deepEqual(await walkAll(client, list, { order: `${order} desc` }), up.toReversed(), `${list.path} ${order}`)
    assert.deepEqual(new Set(up.map(textOf)), new Set(all.map(textOf)), `${list.path} ${order}`)
    const values = up.map((item) => item[camel(order)])
    if (values.every((value) => typeof value === 'string' && !/^\d+$/.test(value))) {
      assert.deepEqual(values, values.toSorted(), `${list.path} ${order}`)
    }
  }
  for (const wrong of ['page_size=-1', 'skip=-1', 'page_token=x']) {
    assertInvalid(await client.get(hrefOf(list, wrong)), wrong.slice(0, wrong.indexOf('=')))
  }
}

const textOf = (item: Json): string => JSON.stringify(item)
const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
