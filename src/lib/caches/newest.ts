/**
 * Map with at most `most` keys. If the map is full, the key that was set longest ago is removed. Setting a key again makes it the
 * newest.
 */
export class Newest<K, V> extends Map<K, V> {
  readonly #most: number
  /** Iterator that is kept just before the oldest key. A new iterator would have to skip all deleted keys each time. */
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
