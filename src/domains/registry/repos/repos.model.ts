import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields } from '#lib/fields.ts'
import { componentPattern, maxPathLength, tagPattern } from '#lib/oci-names.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { SyncConfig } from './sync-config.model.ts'

/** A repo holds the images of one name and belongs to one group; its uid starts with the group's. */
export type Repo = {
  uid: string
  name: string
  description: string
  /** The contract's CatalogTier. */
  catalogTier: number
  bundles: string[]
  /** Equivalent images elsewhere, each written `image:tag`. */
  aliases: string[]
  /** Tags that are still maintained. */
  activeTags: string[]
  /** Where its images are copied from. */
  syncConfig: SyncConfig | undefined
  createTime: string
  updateTime: string
}

/**
 * `group` is the deepest group on the path that exists; empty when not even the organisation does. `folders` are the
 * names of the groups that are missing below it.
 */
export type Found = { repo: RepoRef } | { repo?: undefined; group: string; folders: readonly string[]; name: string }

/** Remembers for half a second which repo a path stands for, since every request of a client names it again. */
export type PathCache = {
  find(path: string): Promise<Found>
  /** Whether there is an organisation of this name. */
  hasOrganization(name: string): Promise<boolean>
  /** Forgets everything, also what is being looked up. */
  clear(): void
}

export const aRepo = kindOf<Repo>('repo')

export const repoType = 'registry.pinfold.dev/Repo'

/** What a client may change, sort by and filter on. Patch, list and validation all read this table. */
export const repoFields = {
  uid: { column: 'uid', sort: true },
  // One path component of an OCI name, since that is what clients pull by.
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

/** Only callers with `repo.internal.admin` change these. */
export const adminFields = ['catalogTier', 'bundles', 'aliases', 'activeTags'] as const satisfies (keyof Repo)[]

/** How many bundles, aliases or active tags one repo may have. */
export const maxListed = 1000

/** Markdown shown with a repo. */
export type RepoReadme = { uid: string; content: string }
export const aReadme = kindOf<RepoReadme>('readme')
export const maxReadmeBytes = 512 * 1024
