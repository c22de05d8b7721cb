// Queue that first returns the items of the caller that has used the least thread time. The items of one caller keep their order.
import { currentAccount } from '../budgets/thread-time.ts'
import {
  arriving,
  background,
  compareShares,
  keepNear,
  liftBehind,
  noteServed,
  type Share,
  type Shares,
} from './shares.ts'

export type Entry<T> = { readonly item: T; readonly shares: Shares }

/** Shares of the caller whose request is running. Without a request, those of the background jobs. */
export function sharesNow(): Shares {
  const spender = currentAccount()
  return spender === undefined ? background : (spender.shares ?? arriving)
}

/** Charges the time to the background jobs if they own the entry. The time of all other callers is measured elsewhere. */
export function chargeBackground({ shares }: Entry<unknown>, ms: number): void {
  if (shares === background) background[0]!.usedMs += ms
}

export class FairQueue<T> {
  readonly #lines = new Map<Share, Entry<T>[]>()
  readonly #sharesNow: () => Shares
  #length = 0

  constructor(now: () => Shares = sharesNow) {
    this.#sharesNow = now
  }

  get length(): number {
    return this.#length
  }

  push(item: T): void {
    const shares = this.#sharesNow()
    const own = shares.at(-1)!
    const line = this.#lines.get(own)
    if (line) {
      // Does not limit a debt for a caller that already waits. Such a caller may always have small items in the queue, and would
      // never pay the debt.
      liftBehind(shares)
      line.push({ item, shares })
    } else {
      keepNear(shares)
      this.#lines.set(own, [{ item, shares }])
    }
    this.#length++
  }

  /** Returns the item that `take` would remove. */
  next(mayTake: (item: T) => boolean = () => true): Entry<T> | undefined {
    let best: Entry<T> | undefined
    for (const [first] of this.#lines.values()) {
      if (!mayTake(first!.item)) continue
      if (!best || compareShares(first!.shares, best.shares) < 0) best = first
    }
    return best
  }

  /** Removes and returns the next item. Skips a caller if `mayTake` returns false for its first item. */
  take(mayTake?: (item: T) => boolean): Entry<T> | undefined {
    const entry = this.next(mayTake)
    if (!entry) return undefined
    const own = entry.shares.at(-1)!
    const line = this.#lines.get(own)!
    line.shift()
    if (line.length === 0) this.#lines.delete(own)
    this.#length--
    noteServed(entry.shares)
    return entry
  }

  *[Symbol.iterator](): Generator<T> {
    for (const line of this.#lines.values()) for (const { item } of line) yield item
  }
}
