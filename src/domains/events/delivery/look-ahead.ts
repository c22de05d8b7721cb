// Decision whether a queue that is behind should store more deliveries. While deliveries of a subject are pending, storing
// later ones of the same subject brings nothing: they would only wait behind the first. So a subject that fails does not
// fill the table, and events of other subjects are still found.
import type { Ahead } from './behind.ts'

/** Bounded steps of one look. Farther ahead, moving the queue's position costs less than looking there again and again. */
const mostSteps = 10

/** A class, since its state lives as long as the queue that it belongs to. */
export class LookAhead {
  readonly #look: (after: number) => Promise<Ahead>
  readonly #hasPending: (subject: string) => boolean
  #position = 0
  readonly #passed = new Set<string>()

  constructor(look: (after: number) => Promise<Ahead>, hasPending: (subject: string) => boolean) {
    this.#look = look
    this.#hasPending = hasPending
  }

  /** Whether there is an event of a subject without pending deliveries, or it is too far to look. */
  async finds(): Promise<boolean> {
    if (![...this.#passed].every(this.#hasPending)) {
      this.#position = 0
      this.#passed.clear()
    }
    for (let step = 0; step < mostSteps; step++) {
      const { position, isFound, isEnd, passed } = await this.#look(this.#position)
      this.#position = position
      for (const subject of passed) this.#passed.add(subject)
      if (isFound || isEnd) return isFound
    }
    return true
  }
}
