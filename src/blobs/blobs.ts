import type { Readable, Writable } from 'node:stream'
import { AppError, type ErrorOptions } from '#lib/errors.ts'

/** Store for the content of blobs. A location is the key of one content. Content at a location is never overwritten. */
export type Blobs = {
  /**
   * Starts to write new content of about `expected` bytes; 0 if the size is unknown. `owner` is the organization that the memory
   * for the upload counts against. Empty for no organization.
   */
  begin(expected: number, owner: string): Promise<Part>
  /**
   * Starts to write content that is copied from another blob store, at the same location. The content is permanent once it is
   * finished.
   */
  beginAt(location: string, expected: number): Promise<Part>
  /** Makes the directory entry of a finished part durable, so that the part survives a crash. */
  hold(part: string): Promise<void>
  /**
   * Makes a finished part permanent. Returns its location, which is never reused. A bucket returns the name of the part. A folder
   * adds a second name and keeps the part until the caller removes it, in case the transaction fails.
   */
  keep(part: string, digest: string): Promise<string>
  /** Opens content, or a range of it. Rejects with ContentMissing if it does not exist. */
  read(blob: Located, reading?: Reading): Promise<Content>
  /**
   * True if the content exists with this size. With `asFarAsKnown`, a bucket is asked only about content that was missing before.
   * Content that was never looked up is assumed to exist.
   */
  has(blob: Located, asFarAsKnown?: boolean): Promise<boolean>
  /** Removes content. Does nothing if it does not exist. */
  remove(location: string): Promise<void>
  /** ID of the store. Returns undefined if the store has none. `list` does not include the file with the ID. */
  readId(): Promise<string | undefined>
  /** Writes the ID durably if the store has none. Returns the ID of the store, which another server may have written first. */
  keepId(id: string): Promise<string>
  /** Removes contents. Returns the locations that could not be removed. */
  removeAll(locations: readonly string[]): Promise<string[]>
  /**
   * Lists all contents and temporary parts. With `hourOfWeek`, a bucket lists only the share of that hour, since listing all
   * objects is expensive.
   */
  list(hourOfWeek?: number): AsyncIterable<Stored>
  /**
   * Aborts unfinished multipart uploads that began before a time on the clock of the store. `list` does not include such uploads.
   */
  abortUploads?(before: number): Promise<void>
  /**
   * Current time of the store, in milliseconds since 1970, for comparison with `changed`. Missing if the store uses the local
   * clock.
   */
  clock?(): Promise<number>
  /**
   * Signed URL with which any client can read the content for a few minutes. Within a minute, the URL stays the same. Returns
   * undefined if the content is known to be missing. Missing if the store has no URLs.
   */
  addressOf?(blob: Located): Promise<string | undefined>
  /** Checkpoints of the transparency logs. `list` does not include checkpoints, and garbage collection keeps them. */
  readonly checkpoints: CheckpointStore
  /** True if the last request to the store succeeded. */
  isUp(): boolean
  /** True if the store has no space for more content. Missing if the store cannot report that. */
  isFull?(): Promise<boolean>
  close(): void
}

/** Store of short texts that are replaced by compare-and-swap. Names of texts have lowercase letters, digits and dashes. */
export type CheckpointStore = {
  read(name: string, signal?: AbortSignal): Promise<StoredCheckpoint | undefined>
  /**
   * Replaces the text if its version is `expected`. `undefined` means that the text must not exist yet. Returns the new version
   * once the text is durable. Returns `undefined` if the version differs, or if another writer has already replaced the new text.
   * If several writers have the same `expected`, at most one succeeds.
   */
  write(name: string, text: string, expected: string | undefined, signal?: AbortSignal): Promise<string | undefined>
  /** Lists the names of all texts. */
  list(): AsyncIterable<string>
  /**
   * False once a bucket was found to ignore conditions of writes. Then `write` reads, compares and writes, which is not atomic.
   */
  isAtomic(): boolean
}

export type StoredCheckpoint = { text: string; version: string }

/** Folder of the checkpoints in a blob folder, and the key prefix in a bucket. */
export const checkpointFolder = 'pinfold-checkpoints'

export type Located = { location: string; size: number }

/** First and last byte of a range. Both are part of the range. */
export type Range = { start: number; end: number }

export type Reading = {
  range?: Range | undefined
  /**
   * Signal that aborts when the client disconnects. Set if the content is sent to a client, which may read slowly. Undefined if
   * this server reads the content.
   */
  client?: AbortSignal | undefined
}

/** Open content. Call one of the two methods, once. */
export type Content = {
  stream(): Readable
  /** Writes the content to the target and ends the target. Rejects if the target closes before the end. */
  sendTo(target: Writable): Promise<void>
}

export type Stored = {
  location: string
  size: number
  /** Time at which the content was written or made permanent, in milliseconds since 1970. */
  changed: number
}

/** Content that is being written, from its first to its last byte. */
export type Part = {
  readonly name: string
  /**
   * Written bytes that are still in memory, and that the store has not reserved. A bucket keeps small content until it is
   * complete. Missing if there are never any.
   */
  readonly unreserved?: number
  /**
   * Appends chunks. Wait for each call before the next one. Rejects with StoreFull if the store is full, and with ContentTooLarge
   * if the store does not accept the size. If `mustReserve` is true, a bucket reserves memory for small content too.
   */
  write(chunks: readonly Buffer[], mustReserve?: boolean): Promise<void>
  /** Resolves when all bytes are durable. `digest` is the SHA-256 in hex if the caller has already computed it. */
  finish(digest?: string): Promise<void>
  /** Closes and removes the part, even if it is finished, after pending writes. Never rejects. */
  discard(): Promise<void>
}

/** Error if no content exists at a location. */
export class ContentMissing extends Error {
  override name = 'ContentMissing'
}

/** Error if the store is full. */
export class StoreFull extends Error {
  override name = 'StoreFull'
}

/** Error if the store, or a proxy in front of it, does not accept content of this size. */
export class ContentTooLarge extends Error {
  override name = 'ContentTooLarge'
}

/** True if a name has the form of our locations. Files and objects with other names do not belong to the store. */
export function isLocation(name: string): boolean {
  return /^(?:c\/[\da-f]{2}\/[\da-f]{32}|sha\d{3}\/[\da-f]{2}\/[\da-f]{64,128}-[\da-f]{16}|uploads\/[\da-f]{32})$/.test(
    name,
  )
}

/** Error if the store is unreachable or denies access. The client can retry. */
export class StoreUnavailable extends AppError {
  constructor(message: string, options: Pick<ErrorOptions, 'cause' | 'reason'> = {}) {
    super('UNAVAILABLE', message, { ...options, details: [{ type: 'RetryInfo', retryDelaySeconds: 5 }] })
  }
}
