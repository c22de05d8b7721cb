import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields } from '#lib/fields.ts'
import { componentPattern, maxPathLength, tagPattern } from '#lib/oci-names.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { SyncConfig } from './sync-config.model.ts'

/** A repository has the images of one name and belongs to one group. Its uid begins with the uid of the group. */
export type Repo = {
  uid: string
  name: string
  description: string
  /** Number of the enum CatalogTier in the API. */
  catalogTier: number
  bundles: string[]
  /** Equivalent images elsewhere, each written `image:tag`. */
  aliases: string[]
  /** Tags that are still maintained. */
  activeTags: string[]
  /** Source of its images if it is copied. */
  syncConfig: SyncConfig | undefined
  createTime: string
  updateTime: string
}

/**
 * Repository at a path, or the part of the path that exists. `group` is the lowest existing group on the path, and empty if the
 * organization does not exist. `folders` are the names of the missing groups below it.
 */
export type Found = { repo: RepoRef } | { repo?: undefined; group: string; folders: readonly string[]; name: string }

/** Cache of repositories by path, for half a second. Every request of a registry client has a path. */
export type PathCache = {
  find(path: string): Promise<Found>
  /** True if an organization has this name. */
  hasOrganization(name: string): Promise<boolean>
  /** Clears the cache, and discards results of look-ups in progress. */
  clear(): void
}

export const toRepoResource = kindOf<Repo>('repo')

export const repoType = 'registry.pinfold.dev/Repo'

/** Fields that a client can change or sort by, and their valid values. Patches, lists and validation use this table. */
export const repoFields = {
  uid: { column: 'uid', sort: true },
  // The name must be one path component of an OCI name, since clients pull by it.
  name: {
    column: 'name',
    sort: true,
    required: true,
    pattern: componentPattern,
    maxLength: maxPathLength,
  },
  description: { column: 'description', update: true, pattern: descriptionPattern },
  catalogTier: { column: 'catalog_tier', update: true },
  bundles: {
    column: 'bundles',
    update: true,
    pattern: /^(?:application|base|byol|ai|ai-gpu|featured|fips|commercial|emeritoss)$/,
  },
  aliases: {
    column: 'aliases',
    update: true,
    pattern: /^[a-zA-Z0-9_.\-/]*[a-zA-Z0-9_.-]:[a-zA-Z0-9_.-]+$/,
    maxLength: 512,
  },
  activeTags: { column: 'active_tags', update: true, pattern: tagPattern },
  syncConfig: { column: 'sync_config', update: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Repo>

/** Fields that only callers with `repo.internal.admin` can change. */
export const adminFields = ['catalogTier', 'bundles', 'aliases', 'activeTags'] as const satisfies (keyof Repo)[]

/** Most bundles, aliases or active tags of one repository. */
export const maxListed = 1000

/** Readme of a repository, in Markdown. */
export type RepoReadme = { uid: string; content: string }
export const toReadmeResource = kindOf<RepoReadme>('readme')
export const maxReadmeBytes = 512 * 1024
