// Stream table of HTTP/2 sessions. Node keeps the streams of a connection in a Map, so every call would live until a full garbage
// collection (lib/caches/slots.ts).
import type { Http2Session, Http2Stream } from 'node:http2'

/**
 * Makes a session without streams keep them in a list. Returns false and changes nothing if this Node stores them differently.
 */
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

/** Private to Node; `stream-table.test.ts` detects changes. */
type State = { streams: Table; pendingStreams: Set<Http2Stream> }
/** Methods of the table that Node uses. */
type Table = Pick<Map<number, Http2Stream>, 'size' | 'get' | 'delete'> & {
  set(id: number, stream: Http2Stream): void
  forEach(each: (stream: Http2Stream) => void): void
}

/** Streams by their IDs. A connection has about a hundred at most, and the wanted one is usually among the last. */
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

  /** Calls `each` for the streams present at the start. Each may be removed meanwhile. */
  forEach(each: (stream: Http2Stream) => void): void {
    for (const { stream } of [...this.#entries]) each(stream)
  }
}
