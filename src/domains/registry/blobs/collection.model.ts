/** Counts of content that a collection has removed, or would remove. */
export type Collected = {
  /** Links from a repository to blobs that no manifest of the repository needs. */
  links: number
  /** Blobs without any link, and their size. */
  blobs: number
  bytes: number
  /** Abandoned uploads. */
  uploads: number
  /** Files that no row refers to, and their total size. A server that was killed may leave such files. */
  files: number
  fileBytes: number
}

export const nothingCollected: Collected = { links: 0, blobs: 0, bytes: 0, uploads: 0, files: 0, fileBytes: 0 }

export const collectionStates = { waiting: 0, running: 1, done: 2, failed: 3 } as const

/** A requested, running or finished collection. */
export type Collection = {
  id: string
  /** True for a dry run, which only counts content. */
  dryRun: boolean
  /** True if the server scheduled the collection. False if a command requested it. */
  scheduled: boolean
  state: (typeof collectionStates)[keyof typeof collectionStates]
  /** Server that runs the collection, or ran it last. */
  node: string
  /** Reason of the failure. Empty if the collection did not fail. */
  problem: string
  collected: Collected
}

export const hasEnded = ({ state }: Collection): boolean => state >= collectionStates.done

/**
 * Minimum time in the trash if clients are redirected to the bucket. Signed URLs are valid for five minutes, and a download that
 * has begun may take another hour.
 */
const addressMs = 65 * 60_000

/** Time in milliseconds for which content without a row stays in the store. */
export function trashMs(settings: { blobTrashSeconds: number; blobRedirects: readonly string[] }): number {
  const wanted = settings.blobTrashSeconds * 1000
  return settings.blobRedirects.join() === 'off' ? wanted : Math.max(wanted, addressMs)
}
