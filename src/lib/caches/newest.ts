/**
 * Map of at most `most` keys. If it is full, the key that was set longest ago is removed. A key that is set again is the newest.
 */
export class Newest<K, V> extends Map<K, V> {
  readonly #most: number
  /** Iterator before the oldest key. A new iterator would pass over all keys that were deleted before it each time. */
  #oldest: MapIterator<K> | undefined

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#most) {
      this.#oldest ??= this.keys()
      this.delete(this.#oldest.next().value!)
    }
    return this
  }
}
