/**
 * Allowed values of a label, declared when the server starts, so that clients cannot create new values. All other values become
 * `other`.
 */
export class ClosedSet {
  readonly #words = new Set<string>()

  constructor(words: Iterable<string> = []) {
    this.declare(words)
  }

  /** Adds words of the server's own code, such as the methods of an entry point. Never call it with text from a request. */
  declare(words: Iterable<string>): void {
    for (const word of words) this.#words.add(word)
  }

  of(word: string): string {
    return this.#words.has(word) ? word : 'other'
  }
}
