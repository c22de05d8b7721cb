import type { By } from '#caller.ts'
import type { Distribution, Package } from '#contents/packages.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { ManifestDocument } from './manifests/manifests.model.ts'
import type { Removal } from './repos/removals.model.ts'
import type { SettledSync, SourceChange } from './repos/sync-config.model.ts'
import type { Mover, TagRepo } from './tags/tags.model.ts'

/** A manifest that was pushed. `tags` are those of the push. With `sparse`, listed content may be pushed later. */
export type PushedManifest = {
  digest: string
  document: ManifestDocument
  tags: readonly string[]
  isNew: boolean
  sparse: boolean
}

/** A change of a tag and its actor. */
export type TagChange = Pick<Mover, 'actor' | 'source'> & { name: string }

/** A tag, a digest, and the time at which the digest was assigned or replaced. */
export type TagAt = { tag: string; digest: string; time: string }

/** Hooks that run in transactions of this domain, which have locked the repository. */
export type RegistryHooks = {
  /** Before the transaction of a push to the repository or group. Caches can be filled. */
  pushBeginning(place: string): Promise<void>
  /** The manifest is stored. Its tags are assigned after this, and may still be refused. */
  manifestPushed(tx: Tx, by: By, repo: TagRepo, pushed: PushedManifest): Promise<void>
  /** Throws if API calls must not change tags of the repository, because they come from another repository or registry. */
  mayChangeTags(reader: Reader, repo: string): Promise<void>
  /** Throws if the tag must not be created, or must not take another digest. */
  mayAssignTag(tx: Tx, repo: TagRepo, move: TagChange & { previousDigest: string }): Promise<void>
  /** Throws if the tag must not be deleted. */
  mayDeleteTag(tx: Tx, repo: TagRepo, tag: TagChange & { digest: string; now: string }): Promise<void>
  /** A tag is assigned to the digest. The tag history does not have it yet. Its time there may be later than now. */
  tagAssigning(tx: Tx, repo: TagRepo, assigned: TagAt, now: string): Promise<void>
  /** A tag points to another digest or is deleted, since this time in the tag history. */
  tagLeft(tx: Tx, repo: TagRepo, left: TagAt): Promise<void>
  /** Throws if the manifest must not be deleted, or without a digest the repository. Called before anything is deleted. */
  mayDelete(tx: Tx, by: By, repo: TagRepo, digest?: string): Promise<void>
  /** The manifest was deleted, and no tag points to it. */
  manifestDeleted(tx: Tx, repo: TagRepo, digest: string): Promise<void>
  /** Checks the requested source of a copied repository. Returns the configuration for `sourceChanged`. */
  sourceChanging(tx: Tx, by: By, change: SourceChange): Promise<SettledSync>
  /** Stores the state of a copy, or that the repository has no source. */
  sourceChanged(tx: Tx, repo: string, settled: SettledSync | undefined, now: string): Promise<void>
  /**
   * Processes the packages of an image before the transaction that stores them. Returns the work to do in that transaction.
   * `place` is the organization.
   */
  packagesRead(
    list: { hash: string; distribution: Distribution },
    packages: readonly Package[],
  ): Promise<(tx: Tx, place: string, now: string) => Promise<void>>
  /**
   * The repository is no longer visible. Deletes or ends at `now` everything that must not outlast it, in a few statements. The
   * row of the repository still has its uid.
   */
  repoHidden(tx: Tx, repo: Removal, now: string): Promise<void>
  /**
   * Removes rows that refer to the repository. Returns how many. Removes all of them if the limit is infinite, and otherwise at
   * most `limit`. A large repository is removed in batches, until nothing is left. Manifests and blobs are removed after this.
   */
  repoDeleting(tx: Tx, repo: Removal, limit: number): Promise<number>
}
