import type { Lapsing } from '#lib/caches/lapsing.ts'
import type { ReadTurns } from '#lib/scheduling/read-turns.ts'
import type { Signal } from '#lib/signal.ts'
import type { ManifestCache } from './manifests/manifest-cache.ts'
import type { PathCache } from './repos/repos.model.ts'
import type { TagCache } from './tags/tag-cache.ts'
import type { DigestUsage } from './usage/digest-usage.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type RegistryParts = {
  /** Bytes of uploads on their way to this server, by organization, where it has a quota. */
  incoming: Map<string, number>
  /** The last request of this server to close an upload, by the upload; it never rejects. */
  closing: Map<string, Promise<void>>
  /** `asked`: a collection of blobs waits to be run. `moved`: one has got further, or has ended. */
  collections: { asked: Signal; moved: Signal }
  /** Tags that were pulled lately. */
  tags: TagCache
  /** Manifests that were read lately. */
  manifests: ManifestCache
  /** Counts of pulls that are not in the table yet. */
  usage: DigestUsage
  /**
   * `pushed`: an image waits to be read. `read`: the contents of an image are known, or cannot be read. `turns`: organizations in
   * the order in which their images are read. `full`: organizations above their quota, whose images are not read for now.
   */
  images: { pushed: Signal; read: Signal; turns: ReadTurns; full: Lapsing<true> }
  /** Repositories by their path in the registry, at most half a second old. */
  paths: PathCache
}
