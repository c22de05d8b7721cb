/** Length above which the list is replaced once it is empty. */
const many = 1024

/**
 * Set of items that come and go, each in a slot of its own until it is removed. Not a Set or a Map: when a table of V8 is full,
 * it refers to the table that replaces it. Once an old table is in the old generation, everything in its successors lives until
 * the whole heap is collected (docs/decisions/0140-v8-heap-of-requests.md).
 */
export class Slots<T extends object> {
  readonly #items: (T | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#items.length - this.#free.length
  }

  /** In no order, with holes. */
  get items(): readonly (T | undefined)[] {
    return this.#items
  }

  /** Its slot, which another has once it is removed. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  at(slot: number): T | undefined {
    return this.#items[slot]
  }

  /** Nothing happens where it is removed already. */
  remove(slot: number, item: T): void {
    if (this.#items[slot] !== item) return
    this.#items[slot] = undefined
    this.#free.push(slot)
    if (this.size > 0 || this.#items.length < many) return
    this.#items.length = 0
    this.#free.length = 0
  }
}
