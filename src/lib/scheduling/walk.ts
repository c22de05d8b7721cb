// Walk through content that users have pushed, in which one item names the next. Ends at a limit, and if nobody waits for it any
// more.
import { createYielder, type Yielder } from './yielder.ts'

export type WalkLimits = {
  /** Number of items that are visited. */
  steps: number
  /** Number of bytes that are read of their content. */
  bytes: number
}

/** Time in milliseconds for which a walk goes on before it yields. A turn for each step would use most of the time. */
const turnMs = 3

export class Walk {
  readonly #limits: WalkLimits
  readonly #signal: AbortSignal
  readonly #exceeded: (limit: string) => Error
  readonly #yielder: Yielder
  readonly #seen = new Set<string>()
  #steps = 0
  #bytes = 0

  /** `exceeded` creates the error of a walk that is too long; its argument is the limit, such as `1000 bytes`. */
  constructor(limits: WalkLimits, signal: AbortSignal, exceeded: (limit: string) => Error, monotonic?: () => number) {
    this.#limits = limits
    this.#signal = signal
    this.#exceeded = exceeded
    this.#yielder = createYielder(monotonic, undefined, turnMs)
  }

  /** True the first time it is asked of this name. */
  isNew(name: string): boolean {
    return this.#seen.size < this.#seen.add(name).size
  }

  /** To be called before it is read. Throws when it is more than is left. */
  spend(steps: number, bytes: number): void {
    this.#steps += steps
    this.#bytes += bytes
    if (this.#steps > this.#limits.steps) throw this.#exceeded(`${this.#limits.steps} steps`)
    if (this.#bytes > this.#limits.bytes) throw this.#exceeded(`${this.#limits.bytes} bytes`)
  }

  /** Call it before each step: yields if it is time. Rejects if nobody waits for the walk any more. */
  async pause(): Promise<void> {
    if (this.#yielder.isDue()) await this.#yielder.next()
    this.#signal.throwIfAborted()
  }
}
