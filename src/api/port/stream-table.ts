// Node keeps the streams of a connection over HTTP/2 in a Map, so every call would live until the whole heap is collected (lib/caches/slots.ts).
import type { Http2Session, Http2Stream } from 'node:http2'

/** Has a session that has no stream yet keep them in a list. Answers `false` where this Node does it in another way; then nothing is changed. */
export function keepStreamsInList(session: Http2Session): boolean {
  const properties = session as unknown as Record<symbol, Partial<State> | undefined | null>
  for (const key of Object.getOwnPropertySymbols(session)) {
    const state = properties[key]
    if (state?.streams?.size === 0 && state.pendingStreams) {
      state.streams = new StreamTable()
      return true
    }
  }
  return false
}

/** Private to Node; `stream-table.test.ts` notices when it changes. */
type State = { streams: Table; pendingStreams: Set<Http2Stream> }
/** What Node does with it. */
type Table = Pick<Map<number, Http2Stream>, 'size' | 'get' | 'delete'> & {
  set(id: number, stream: Http2Stream): void
  forEach(each: (stream: Http2Stream) => void): void
}

/** By their ids. A connection has about a hundred at most, and the one that is looked for is most often among the last. */
class StreamTable implements Table {
  readonly #entries: { id: number; stream: Http2Stream }[] = []

  get size(): number {
    return this.#entries.length
  }

  #indexOf(id: number): number {
    return this.#entries.findLastIndex((entry) => entry.id === id)
  }

  get(id: number): Http2Stream | undefined {
    return this.#entries[this.#indexOf(id)]?.stream
  }

  set(id: number, stream: Http2Stream): void {
    this.delete(id)
    this.#entries.push({ id, stream })
  }

  delete(id: number): boolean {
    const index = this.#indexOf(id)
    if (index < 0) return false
    this.#entries.splice(index, 1)
    return true
  }

  /** Of those that are there when it begins; each may be removed meanwhile. */
  forEach(each: (stream: Http2Stream) => void): void {
    for (const { stream } of [...this.#entries]) each(stream)
  }
}
