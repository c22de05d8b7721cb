/** What a collection has removed so far, or would remove. */
export type Collected = {
  /** Blobs that a repo had and that no manifest of it needs. */
  links: number
  /** Blobs that no repo has any more, and their size. */
  blobs: number
  bytes: number
  /** Uploads that nobody went on with. */
  uploads: number
  /** Files that no row names, such as those of a server that was killed, and their size. */
  files: number
  fileBytes: number
}

/** A collection that runs, or has ended. */
export type Collection = { id: string; dryRun: boolean; collected: Collected; done: Promise<void> }

export type Collector = {
  /** Starts a collection; with `dryRun` it only counts. One that would do the same and still runs is joined. */
  start(dryRun: boolean): Collection
  /** One of the latest. Throws NOT_FOUND. */
  find(id: string): Collection
  /** Waits for what runs. */
  close(): Promise<void>
}
