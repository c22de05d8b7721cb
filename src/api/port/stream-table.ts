// Replacement for the stream table of HTTP/2 sessions. Node keeps the streams of a connection in a Map. With a Map, the data of
// each call would stay in memory until a full garbage collection (lib/caches/slots.ts).
import type { Http2Session, Http2Stream } from 'node:http2'

/**
 * Replaces the table of a session without streams. If this Node version stores streams differently, changes nothing and returns
 * false.
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

/** Table in Node's session object. It is private; `stream-table.test.ts` detects changes of Node. */
type State = { streams: Table; pendingStreams: Set<Http2Stream> }
/** Methods of a Map that Node calls. */
type Table = Pick<Map<number, Http2Stream>, 'size' | 'get' | 'delete'> & {
  set(id: number, stream: Http2Stream): void
  forEach(each: (stream: Http2Stream) => void): void
}

/**
 * List of streams by ID. A connection has at most about a hundred streams. Searches start at the end, since the newest streams
 * are used most.
 */
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

  /** Calls `each` for each stream that is present at the start. `each` may remove streams. */
  forEach(each: (stream: Http2Stream) => void): void {
    for (const { stream } of [...this.#entries]) each(stream)
  }
}
