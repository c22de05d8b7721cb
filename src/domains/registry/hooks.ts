import type { By } from '#caller.ts'
import type { Distribution, Package } from '#contents/packages.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { ManifestDocument } from './manifests/manifests.model.ts'
import type { Removal } from './repos/removals.model.ts'
import type { SettledSync, SourceChange } from './repos/sync-config.model.ts'
import type { Mover, TagRepo } from './tags/tags.model.ts'

/** A manifest that was pushed. `tags` are those of the push, and `sparse` says that what it lists may come later. */
export type PushedManifest = {
  digest: string
  document: ManifestDocument
  tags: readonly string[]
  isNew: boolean
  sparse: boolean
}

/** A change of a tag, and who makes it. */
export type TagChange = Pick<Mover, 'actor' | 'source'> & { name: string }

/** A tag, a digest, and since when the tag points to it, or has left it. */
export type TagAt = { tag: string; digest: string; time: string }

/** Hooks that run in transactions of this domain, which have locked the repository. */
export type RegistryHooks = {
  /** A push of a manifest to the repository or group begins, outside of a transaction: caches can be filled. */
  pushBeginning(place: string): Promise<void>
  /** The manifest is stored. Its tags are assigned after this, and may still be refused. */
  manifestPushed(tx: Tx, by: By, repo: TagRepo, pushed: PushedManifest): Promise<void>
  /** Throws if calls of the API must not change tags of the repository, as it gets them from elsewhere. */
  mayChangeTags(reader: Reader, repo: string): Promise<void>
  /** Throws if the tag must not be created, or must not take another digest. */
  mayAssignTag(tx: Tx, repo: TagRepo, move: TagChange & { previousDigest: string }): Promise<void>
  /** Throws if the tag must not be deleted. */
  mayDeleteTag(tx: Tx, repo: TagRepo, tag: TagChange & { digest: string; now: string }): Promise<void>
  /** A tag is assigned to the digest. The tag history does not have it yet. Its time there may be later than now. */
  tagAssigning(tx: Tx, repo: TagRepo, assigned: TagAt, now: string): Promise<void>
  /** A tag does not point to the digest any more since this time, by the tag history. */
  tagLeft(tx: Tx, repo: TagRepo, left: TagAt): Promise<void>
  /**
   * Throws if the manifest must not be deleted, or without a digest the repository. To be asked before anything is deleted.
   */
  mayDelete(tx: Tx, by: By, repo: TagRepo, digest?: string): Promise<void>
  /** The manifest was deleted, and no tag points to it. */
  manifestDeleted(tx: Tx, repo: TagRepo, digest: string): Promise<void>
  /** Checks the asked source of a repository that is copied. Returns what is to be stored with `sourceChanged`. */
  sourceChanging(tx: Tx, by: By, change: SourceChange): Promise<SettledSync>
  /** Stores where the copying of a repository stands, or that it is copied from nowhere. */
  sourceChanged(tx: Tx, repo: string, settled: SettledSync | undefined, now: string): Promise<void>
  /**
   * Takes in the packages of an image that was read, before the transaction that stores them with the image. Returns what to
   * do in that transaction; `place` is the organization.
   */
  packagesRead(
    list: { hash: string; distribution: Distribution },
    packages: readonly Package[],
  ): Promise<(tx: Tx, place: string, now: string) => Promise<void>>
  /**
   * Callers do not find the repository any more. Deletes or ends at `now` what must not outlast it, in a few statements. The
   * row of the repository still has its uid.
   */
  repoHidden(tx: Tx, repo: Removal, now: string): Promise<void>
  /**
   * Removes rows that refer to the repository, and returns how many: all of them if the limit is infinite, else at most so
   * many. A large repository is removed in batches, until nothing is left. Manifests and blobs are removed after this.
   */
  repoDeleting(tx: Tx, repo: Removal, limit: number): Promise<number>
}
