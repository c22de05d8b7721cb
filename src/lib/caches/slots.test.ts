// Own process: heap garbage of other test files would be counted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Slots } from './slots.ts'

test('reuses the slot of a removed item, and ignores removal of an absent item', () => {
  const slots = new Slots<{ name: string }>()
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  const [first, second] = [slots.add(a), slots.add(b)]
  assert.deepEqual([slots.at(first), slots.at(second), slots.size], [a, b, 2])
  slots.remove(first, a)
  assert.deepEqual([slots.at(first), slots.size], [undefined, 1])
  assert.equal(slots.add(c), first)
  slots.remove(first, a)
  assert.deepEqual(
    slots.items.filter((item) => item !== undefined),
    [c, b],
  )
  for (const [slot, item] of [
    [first, c],
    [second, b],
    [second, b],
  ] as const) {
    slots.remove(slot, item)
  }
  assert.equal(slots.size, 0)
  assert.equal(slots.at(99), undefined)
})

test('empties its list after very many items are removed', () => {
  const slots = new Slots<object>()
  const items = Array.from({ length: 5000 }, () => ({}))
  const at = items.map((item) => slots.add(item))
  assert.equal(slots.size, items.length)
  for (const [i, item] of items.entries()) slots.remove(at[i]!, item)
  assert.equal(slots.items.length, 0)
  assert.equal(slots.add({}), 0)
})

test('does not promote removed items to the old heap generation, unlike a Set', () => {
  setFlagsFromString('--expose-gc')
  // After objects of one kind, V8 would move objects of both kinds to the old generation at once.
  setFlagsFromString('--no-allocation-site-pretenuring')
  const collect = runInNewContext('gc') as NodeJS.GCFunction
  const old = () => getHeapSpaceStatistics().find((space) => space.space_name === 'old_space')!.space_used_size
  /** Growth of the old heap generation in bytes, while 60,000 objects of 1 kB are created and freed, 32 at a time. */
  function grownBy(come: (item: object) => () => void): number {
    const leave: (() => void)[] = []
    const turn = (i: number) => {
      leave[i % 32]?.()
      leave[i % 32] = come({ text: new Array(128).fill(i) })
    }
    for (let i = 0; i < 32; i++) turn(i)
    collect({ type: 'major', execution: 'sync' })
    const before = old()
    let most = before
    for (let i = 0; i < 60_000; i++) {
      turn(i)
      if (i % 1000 === 0) most = Math.max(most, old())
    }
    return most - before
  }
  const slots = new Slots<object>()
  const inSlots = grownBy((item) => {
    const slot = slots.add(item)
    return () => slots.remove(slot, item)
  })
  const set = new Set<object>()
  const inSet = grownBy((item) => {
    set.add(item)
    return () => set.delete(item)
  })
  assert.ok(inSlots < 4e6, `${inSlots} bytes`)
  assert.ok(inSet > 8e6, `${inSet} bytes of a Set; if it is none any more, there is no need for slots`)
})
