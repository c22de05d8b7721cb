import type { ExpiringCache } from '#lib/caches/expiring-cache.ts'
import type { ReadScheduler } from '#lib/scheduling/read-scheduler.ts'
import type { Signal } from '#lib/signal.ts'
import type { ManifestCache } from './manifests/manifest-cache.ts'
import type { PathCache } from './repos/repos.model.ts'
import type { TagCache } from './tags/tag-cache.ts'
import type { DigestUsage } from './usage/digest-usage.ts'

/** Caches, signals and clients of the registry domain. They exist as long as the process runs. */
export type RegistryParts = {
  /** Bytes of uploads in progress on this server, by organization, if it has a quota. */
  incoming: Map<string, number>
  /** For each upload, the last request on this server that closes it. The promise never rejects. */
  closing: Map<string, Promise<void>>
  /** `asked`: signals that a collection of blobs was requested. `moved`: signals that a collection has made progress or ended. */
  collections: { asked: Signal; moved: Signal }
  /** Tags that were pulled recently. */
  tags: TagCache
  /** Manifests that were read recently. */
  manifests: ManifestCache
  /** Counts of pulls that are not yet written to the database. */
  usage: DigestUsage
  /**
   * `pushed`: an image is queued for reading. `read`: an image was read, or is unreadable. `turns`: organizations in the order in
   * which their images are read. `full`: organizations above their quota, whose images are not read for now.
   */
  images: { pushed: Signal; read: Signal; turns: ReadScheduler; full: ExpiringCache<true> }
  /** Repositories by their path in the registry. Entries are at most half a second old. */
  paths: PathCache
}
