/** Length above which the array is emptied once it has no items. */
const many = 1024

/**
 * Set of items that are often added and removed. Each item has a slot in an array until it is removed. A Set or Map does not
 * serve: when V8 replaces its full table, the old table refers to the new one. If the old table is in the old generation,
 * everything in the later tables stays in memory until a full garbage collection (docs/decisions/0140-v8-heap-of-requests.md).
 */
export class Slots<T extends object> {
  readonly #items: (T | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** All slots, in no order. Free slots are undefined. */
  get items(): readonly (T | undefined)[] {
    return this.#items
  }

  /** Adds an item and returns its slot. After the item is removed, another item may get the slot. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  at(slot: number): T | undefined {
    return this.#items[slot]
  }

  /** Removes an item. Does nothing if the item was already removed. */
  remove(slot: number, item: T): void {
    if (this.#items[slot] !== item) return
    this.#items[slot] = undefined
    this.#free.push(slot)
    if (this.size > 0 || this.#items.length < many) return
    this.#items.length = 0
    this.#free.length = 0
  }
}
