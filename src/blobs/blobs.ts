import type { Readable, Writable } from 'node:stream'

/** Where the content of blobs is kept. A location names one content that is never written again. */
export type Blobs = {
  /** Starts a new content under a temporary name. */
  begin(): Promise<Part>
  /** Makes a finished part last under its own name, so that it is there after a crash. */
  hold(part: string): Promise<void>
  /**
   * Gives a finished part its lasting location, which no other content ever had or will have. The part itself stays until
   * it is removed, since it may still be needed when what follows fails.
   */
  keep(part: string, digest: string): Promise<string>
  /** Rejects with ContentMissing when there is nothing. */
  read(location: string): Promise<Content>
  /** Whether there is something, as far as can be told without reading it. */
  has(location: string): Promise<boolean>
  /** Does nothing when it is gone already. */
  remove(location: string): Promise<void>
  /** The id of the store, which `list` leaves out; `undefined` when it has none. */
  readId(): Promise<string | undefined>
  /** Gives the store an id, on disk, unless it has one; answers with the one that it has then. */
  keepId(id: string): Promise<string>
  /** Everything that is there, temporary parts too. */
  list(): AsyncIterable<Stored>
}

/** An open content, to be read once by either. */
export type Content = {
  stream(): Readable
  /** Writes `size` bytes from `start` on, and ends the target. Rejects when the target closes before. */
  sendTo(target: Writable, start: number, size: number): Promise<void>
}

export type Stored = {
  location: string
  size: number
  /** Milliseconds since 1970: when it was last written, or kept. */
  changed: number
}

/** A content while it is written, front to back. */
export type Part = {
  readonly name: string
  /** One write at a time. Rejects with StoreFull when there is no room. */
  write(chunks: readonly Buffer[]): Promise<void>
  /** When it resolves, every byte is on disk. */
  finish(): Promise<void>
  /** Closes and removes it; never rejects. */
  discard(): Promise<void>
}

/** There is no content at this location. */
export class ContentMissing extends Error {
  override name = 'ContentMissing'
}

/** The store has no room for more. */
export class StoreFull extends Error {
  override name = 'StoreFull'
}
