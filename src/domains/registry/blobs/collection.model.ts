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

export const nothingCollected: Collected = { links: 0, blobs: 0, bytes: 0, uploads: 0, files: 0, fileBytes: 0 }

export const collectionStates = { waiting: 0, running: 1, done: 2, failed: 3 } as const

/** A collection that was asked for, runs, or has ended. */
export type Collection = {
  id: string
  /** It only counts. */
  dryRun: boolean
  /** By the server itself, and not by a command. */
  scheduled: boolean
  state: (typeof collectionStates)[keyof typeof collectionStates]
  /** Which node runs it, or ran it last. */
  node: string
  /** Why it failed; empty unless it did. */
  problem: string
  collected: Collected
}

export const hasEnded = ({ state }: Collection): boolean => state >= collectionStates.done

/** An address at the bucket is good for five minutes, and what was begun with one takes a while. */
const addressMs = 65 * 60_000

/** How long a content stays in the store that no row names any more. */
export function trashMs(settings: { blobTrashSeconds: number; blobRedirects: readonly string[] }): number {
  const wanted = settings.blobTrashSeconds * 1000
  return settings.blobRedirects.join() === 'off' ? wanted : Math.max(wanted, addressMs)
}
