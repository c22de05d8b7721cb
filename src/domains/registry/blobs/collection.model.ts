/** Counts of content that a collection has removed, or would remove. */
export type Collected = {
  /** Links of a repository to blobs that none of its manifests needs. */
  links: number
  /** Blobs without any link, and their size. */
  blobs: number
  bytes: number
  /** Uploads that were abandoned. */
  uploads: number
  /** Files without a row, for example of a server that was killed, and their size. */
  files: number
  fileBytes: number
}

export const nothingCollected: Collected = { links: 0, blobs: 0, bytes: 0, uploads: 0, files: 0, fileBytes: 0 }

export const collectionStates = { waiting: 0, running: 1, done: 2, failed: 3 } as const

/** A requested, running or finished collection. */
export type Collection = {
  id: string
  /** True if the collection only counts. */
  dryRun: boolean
  /** True if the server scheduled it, and no command requested it. */
  scheduled: boolean
  state: (typeof collectionStates)[keyof typeof collectionStates]
  /** Node that runs it, or ran it last. */
  node: string
  /** Reason of the failure. Empty without one. */
  problem: string
  collected: Collected
}

export const hasEnded = ({ state }: Collection): boolean => state >= collectionStates.done

/** Signed addresses at the bucket are valid for five minutes, and a download that has begun takes a while. */
const addressMs = 65 * 60_000

/** Time in milliseconds for which content without a row stays in the store. */
export function trashMs(settings: { blobTrashSeconds: number; blobRedirects: readonly string[] }): number {
  const wanted = settings.blobTrashSeconds * 1000
  return settings.blobRedirects.join() === 'off' ? wanted : Math.max(wanted, addressMs)
}
