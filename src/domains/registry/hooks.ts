import type { By } from '#caller.ts'
import type { Distribution, Package } from '#contents/packages.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { ManifestDocument } from './manifests/manifests.model.ts'
import type { Removal } from './repos/removals.model.ts'
import type { ResolvedSync, SourceChange } from './repos/sync-config.model.ts'
import type { AssignmentCause, TagRepo } from './tags/tags.model.ts'

/**
 * A manifest that was pushed. `tags` are the tags of the push. With `sparse`, content that the manifest lists may be pushed
 * later.
 */
export type PushedManifest = {
  digest: string
  document: ManifestDocument
  tags: readonly string[]
  isNew: boolean
  sparse: boolean
}

/** A change of a tag and its actor. */
export type TagChange = Pick<AssignmentCause, 'actor' | 'source'> & { name: string }

/** A tag, a digest, and the time at which the digest was assigned or replaced. */
export type TagAt = { tag: string; digest: string; time: string }

/** Hooks that run in transactions of this domain, which have locked the repository. */
export type RegistryHooks = {
  /** Runs before the transaction of a push to the repository or group, for example to fill caches. */
  pushBeginning(group: string): Promise<void>
  /** Runs after the manifest is stored and before its tags are assigned. An assignment may still be refused. */
  manifestPushed(tx: Tx, by: By, repo: TagRepo, pushed: PushedManifest): Promise<void>
  /** Throws if API calls must not change tags of the repository, because its tags come from another repository or registry. */
  mayChangeTags(reader: Reader, repo: string): Promise<void>
  /** Throws if the tag must not be created, or must not be assigned to another digest. */
  mayAssignTag(tx: Tx, repo: TagRepo, move: TagChange & { previousDigest: string }): Promise<void>
  /** Throws if the tag must not be deleted. */
  mayDeleteTag(tx: Tx, repo: TagRepo, tag: TagChange & { digest: string; now: string }): Promise<void>
  /**
   * Runs when a tag is assigned to the digest, before the tag history has the assignment. Its time in the tag history may be
   * later than `now`.
   */
  tagAssigning(tx: Tx, repo: TagRepo, assigned: TagAt, now: string): Promise<void>
  /** Runs when a tag is assigned to another digest or is deleted. `left.time` is the time of this change in the tag history. */
  tagUnassigned(tx: Tx, repo: TagRepo, left: TagAt): Promise<void>
  /**
   * Throws if the manifest must not be deleted. Without a digest, throws if the repository must not be deleted. Runs before
   * anything is deleted.
   */
  mayDelete(tx: Tx, by: By, repo: TagRepo, digest?: string): Promise<void>
  /** Runs after the manifest was deleted, when no tag points to it. */
  manifestDeleted(tx: Tx, repo: TagRepo, digest: string): Promise<void>
  /** Checks the requested source of a copied repository. Returns the configuration for `sourceChanged`. */
  sourceChanging(tx: Tx, by: By, change: SourceChange): Promise<ResolvedSync>
  /** Stores the state of a copied repository. `settled` is undefined if the repository has no source. */
  sourceChanged(tx: Tx, repo: string, settled: ResolvedSync | undefined, now: string): Promise<void>
  /**
   * Processes the packages of an image before the transaction that stores them. Returns the work to do in that transaction.
   */
  packagesRead(
    list: { hash: string; distribution: Distribution },
    packages: readonly Package[],
  ): Promise<(tx: Tx, organization: string, now: string) => Promise<void>>
  /**
   * Runs when the repository becomes invisible. Deletes or ends, at `now` and in a few statements, everything that must not
   * outlast the repository. The row of the repository still has its uid.
   */
  repoHidden(tx: Tx, repo: Removal, now: string): Promise<void>
  /**
   * Removes rows that refer to the repository, and returns their number. With an infinite limit, removes all of them; otherwise
   * at most `limit`. For a large repository the hook runs in batches until it returns 0. Manifests and blobs are removed after
   * this.
   */
  repoDeleting(tx: Tx, repo: Removal, limit: number): Promise<number>
}
