// Limited traversal of content that users have pushed, in which items refer to other items. Stops at a limit, or when the caller
// has gone.
import { createYielder, type Yielder } from './yielder.ts'

export type WalkLimits = {
  /** Maximum number of visited items. */
  steps: number
  /** Maximum number of bytes read from the content of these items. */
  bytes: number
}

/** Time in milliseconds after which a traversal yields to other work. Yielding after each item would take most of the time. */
const turnMs = 3

export class Walk {
  readonly #limits: WalkLimits
  readonly #signal: AbortSignal
  readonly #exceeded: (limit: string) => Error
  readonly #yielder: Yielder
  readonly #seen = new Set<string>()
  #steps = 0
  #bytes = 0

  /** `exceeded` creates the error of a traversal that reaches a limit. Its argument is the limit, such as `1000 bytes`. */
  constructor(limits: WalkLimits, signal: AbortSignal, exceeded: (limit: string) => Error, monotonic?: () => number) {
    this.#limits = limits
    this.#signal = signal
    this.#exceeded = exceeded
    this.#yielder = createYielder(monotonic, undefined, turnMs)
  }

  /** True for a name that was not passed before. */
  isNew(name: string): boolean {
    return this.#seen.size < this.#seen.add(name).size
  }

  /** True after a limit was exceeded. */
  get isSpent(): boolean {
    return this.#steps > this.#limits.steps || this.#bytes > this.#limits.bytes
  }

  /** Counts items and bytes. Call it before they are read. Throws if a limit is exceeded. */
  spend(steps: number, bytes: number): void {
    this.#steps += steps
    this.#bytes += bytes
    if (this.#steps > this.#limits.steps) throw this.#exceeded(`${this.#limits.steps} steps`)
    if (this.#bytes > this.#limits.bytes) throw this.#exceeded(`${this.#limits.bytes} bytes`)
  }

  /** Call it before each item. Yields to other work if it is time. Rejects if the caller has gone. */
  async pause(): Promise<void> {
    if (this.#yielder.isDue()) await this.#yielder.next()
    this.#signal.throwIfAborted()
  }
}
