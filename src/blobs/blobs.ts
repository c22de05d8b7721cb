import type { Readable, Writable } from 'node:stream'
import { AppError, type ErrorOptions } from '#lib/errors.ts'

/** Store for the content of blobs. A location names one content and is never written again. */
export type Blobs = {
  /**
   * Begins new content of about `expected` bytes, 0 if unknown. `owner` is the organization that shares the memory for uploads
   * with others. Empty for none.
   */
  begin(expected: number, owner: string): Promise<Part>
  /** Begins content at a location of another store, which is permanent once the content is finished. */
  beginAt(location: string, expected: number): Promise<Part>
  /** Makes a finished part durable under its own name, so that it survives a crash. */
  hold(part: string): Promise<void>
  /**
   * Gives a finished part its permanent location, which is never reused. Either that is the name of the part, or the part itself
   * stays until it is removed, since it is needed again if a later step fails.
   */
  keep(part: string, digest: string): Promise<string>
  /** Opens content, or a range of it. Rejects with ContentMissing if it does not exist. */
  read(blob: Located, reading?: Reading): Promise<Content>
  /**
   * True if the content exists with this size. With `asFarAsKnown`, uses cached results and sends no request over the network.
   */
  has(blob: Located, asFarAsKnown?: boolean): Promise<boolean>
  /** Removes content. Does nothing if it does not exist. */
  remove(location: string): Promise<void>
  /** Id of the store, which `list` leaves out. Returns undefined if it has none. */
  readId(): Promise<string | undefined>
  /** Writes an id for the store, durably, unless it has one. Returns the id that it then has. */
  keepId(id: string): Promise<string>
  /** Removes several contents. Returns those that the store did not remove. */
  removeAll(locations: readonly string[]): Promise<string[]>
  /** Lists all contents and temporary parts. If listing is expensive, only the share of an hour of the week if one is given. */
  list(hourOfWeek?: number): AsyncIterable<Stored>
  /** Aborts unfinished uploads that began before this time of the store and that `list` does not show. */
  abortUploads?(before: number): Promise<void>
  /** Clock of the store in milliseconds, to which `changed` of listed contents refers. Missing if that is the local clock. */
  clock?(): Promise<number>
  /**
   * Address from which anyone can read the content for some minutes. It stays the same for a while. Returns undefined if the
   * store has no addresses, or if the content is known to be missing.
   */
  addressOf?(blob: Located): Promise<string | undefined>
  /** Checkpoints of the transparency logs. Neither `list` nor garbage collection includes them. */
  readonly checkpoints: CheckpointStore
  /** True if the store was reachable at the last request. */
  isUp(): boolean
  /** True if there is no space for more content. Missing if the store cannot tell. */
  isFull?(): Promise<boolean>
  close(): void
}

/** Short texts that are replaced by compare-and-swap. Names consist of lowercase letters, digits and dashes. */
export type CheckpointStore = {
  read(name: string, signal?: AbortSignal): Promise<StoredCheckpoint | undefined>
  /**
   * Replaces the text whose version is `expected`, or creates it if that is `undefined`. Returns the new version once it is
   * durable, or `undefined` if the store has another version. If several writers have the same `expected`, only one succeeds.
   */
  write(name: string, text: string, expected: string | undefined, signal?: AbortSignal): Promise<string | undefined>
  /** Names of all texts. */
  list(): AsyncIterable<string>
  /** False once a bucket has shown that it ignores conditions of writes. `write` then reads, compares and writes. */
  isAtomic(): boolean
}

export type StoredCheckpoint = { text: string; version: string }

/** Folder of the checkpoints, and the beginning of their keys in a bucket. */
export const checkpointFolder = 'pinfold-checkpoints'

export type Located = { location: string; size: number }

/** First and last byte, both inclusive and inside the content. */
export type Range = { start: number; end: number }

export type Reading = {
  range?: Range | undefined
  /**
   * Signal of the client that receives the content, aborted when it disconnects. Content for a client is read at the speed of the
   * client, and other content at once.
   */
  client?: AbortSignal | undefined
}

/** Open content, to be read once by one of the two methods. */
export type Content = {
  stream(): Readable
  /** Writes the content and ends the target. Rejects if the target closes earlier. */
  sendTo(target: Writable): Promise<void>
}

export type Stored = {
  location: string
  size: number
  /** Time of the last write, or of `keep`, in milliseconds since 1970. */
  changed: number
}

/** Content while it is written from beginning to end. */
export type Part = {
  readonly name: string
  /** Writes one call at a time. Rejects with StoreFull if the store is full, and with ContentTooLarge. */
  write(chunks: readonly Buffer[]): Promise<void>
  /** Resolves when every byte is durable. `digest` is the SHA-256 in hex if the caller has computed it. */
  finish(digest?: string): Promise<void>
  /** Removes and closes the part, even if it is finished, as soon as pending writes end. Never rejects. */
  discard(): Promise<void>
}

/** No content exists at this location. */
export class ContentMissing extends Error {
  override name = 'ContentMissing'
}

/** The store is full. */
export class StoreFull extends Error {
  override name = 'StoreFull'
}

/** The store, or a proxy before it, does not accept content of this size. */
export class ContentTooLarge extends Error {
  override name = 'ContentTooLarge'
}

/** True if the name has the form of our locations. Other files in a folder or bucket do not belong to the store. */
export function isLocation(name: string): boolean {
  return /^(?:c\/[\da-f]{2}\/[\da-f]{32}|sha\d{3}\/[\da-f]{2}\/[\da-f]{64,128}-[\da-f]{16}|uploads\/[\da-f]{32})$/.test(
    name,
  )
}

/** The store is unreachable or denies access. A client may retry. */
export class StoreAway extends AppError {
  constructor(message: string, options: Pick<ErrorOptions, 'cause' | 'reason'> = {}) {
    super('UNAVAILABLE', message, { ...options, details: [{ type: 'RetryInfo', retryDelaySeconds: 5 }] })
  }
}
