import type { Readable, Writable } from 'node:stream'
import { AppError, type ErrorOptions } from '#lib/errors.ts'

/** Where the content of blobs is kept. A location names one content that is never written again. */
export type Blobs = {
  /**
   * Starts a new content, of so many bytes as far as anybody knows, and of 0 where nobody does. `owner` is who shares what there
   * is for contents on their way with others, such as an organisation, and empty for nobody.
   */
  begin(expected: number, owner: string): Promise<Part>
  /** The same at a location that another store has given out, where it lasts once it is finished. */
  beginAt(location: string, expected: number): Promise<Part>
  /** Makes a finished part last under its own name, so that it is there after a crash. */
  hold(part: string): Promise<void>
  /**
   * Gives a finished part its lasting location, which no other content ever had or will have. Either that is the name of
   * the part, or the part itself stays until it is removed, since it may still be needed when what follows fails.
   */
  keep(part: string, digest: string): Promise<string>
  /** All of a content, or a range of it. Rejects with ContentMissing when there is nothing. */
  read(blob: Located, reading?: Reading): Promise<Content>
  /** Whether it is there with this size: for certain, or `asFarAsKnown`, which asks nobody over the network. */
  has(blob: Located, asFarAsKnown?: boolean): Promise<boolean>
  /** Does nothing when it is gone already. */
  remove(location: string): Promise<void>
  /** The id of the store, which `list` leaves out; `undefined` when it has none. */
  readId(): Promise<string | undefined>
  /** Gives the store an id, on disk, unless it has one; answers with the one that it has then. */
  keepId(id: string): Promise<string>
  /** The same for many at once; answers with those that are there still, since the store would not remove them. */
  removeAll(locations: readonly string[]): Promise<string[]>
  /** Everything that is there, temporary parts too; where listing costs, the share of an hour of the week if one is given. */
  list(hourOfWeek?: number): AsyncIterable<Stored>
  /** Gives up what was begun before this time of the store and never finished; of what `list` does not show. */
  abortUploads?(before: number): Promise<void>
  /** What `changed` of what it lists goes by, where the store has a clock of its own. */
  clock?(): Promise<number>
  /**
   * An address from which anybody can read the content for the next minutes, the same for a while; nothing where the
   * store has none, or the content is known to be missing.
   */
  addressOf?(blob: Located): Promise<string | undefined>
  /** The checkpoints of the transparency logs. Neither `list` nor the garbage collection knows them. */
  readonly checkpoints: CheckpointStore
  /** Whether the store could be reached when it was last needed. */
  isUp(): boolean
  /** Whether there is no room for another content, where the store can tell. */
  isFull?(): Promise<boolean>
  close(): void
}

/** Short texts, each with a name of lowercase letters, digits and dashes, that are replaced by compare and swap. */
export type CheckpointStore = {
  read(name: string, signal?: AbortSignal): Promise<StoredCheckpoint | undefined>
  /**
   * Replaces the text whose version is `expected`, or creates it if that is `undefined`. Returns the new version once it is
   * durable, or `undefined` if the store has another version. Of several writers with the same `expected` only one succeeds.
   */
  write(name: string, text: string, expected: string | undefined, signal?: AbortSignal): Promise<string | undefined>
  /** The names of all texts. */
  list(): AsyncIterable<string>
  /** False once a bucket has shown that it ignores the conditions of writes. Then `write` reads, compares and writes. */
  isAtomic(): boolean
}

export type StoredCheckpoint = { text: string; version: string }

/** The folder of the checkpoints, and the beginning of their keys in a bucket. */
export const checkpointFolder = 'pinfold-checkpoints'

export type Located = { location: string; size: number }

/** Both ends are inside the content, and both are meant. */
export type Range = { start: number; end: number }

export type Reading = {
  range?: Range | undefined
  /** Of the client that it is for, aborted once that has gone: it is read as slowly as the client takes it. What is for none is read at once. */
  client?: AbortSignal | undefined
}

/** An open content, to be read once by either. */
export type Content = {
  stream(): Readable
  /** Writes it and ends the target. Rejects when the target closes before. */
  sendTo(target: Writable): Promise<void>
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
  /** One write at a time. Rejects with StoreFull when there is no room, and with ContentTooLarge. */
  write(chunks: readonly Buffer[]): Promise<void>
  /** When it resolves, every byte is safe. `digest` is its SHA-256 in hex, from whoever has it already. */
  finish(digest?: string): Promise<void>
  /** Removes it, also when it is finished, and closes it, as soon as nothing is at work on it; never rejects. */
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

/** The store, or what is before it, takes no content of this size. */
export class ContentTooLarge extends Error {
  override name = 'ContentTooLarge'
}

/** Whether a store of ours gives out such a name. Whatever else is found in a folder or a bucket belongs to somebody else. */
export function isLocation(name: string): boolean {
  return /^(?:c\/[\da-f]{2}\/[\da-f]{32}|sha\d{3}\/[\da-f]{2}\/[\da-f]{64,128}-[\da-f]{16}|uploads\/[\da-f]{32})$/.test(
    name,
  )
}

/** The store cannot be reached, or does not let us in; a client may try again. */
export class StoreAway extends AppError {
  constructor(message: string, options: Pick<ErrorOptions, 'cause' | 'reason'> = {}) {
    super('UNAVAILABLE', message, { ...options, details: [{ type: 'RetryInfo', retryDelaySeconds: 5 }] })
  }
}
