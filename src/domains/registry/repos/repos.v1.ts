// Version 1 of the repository API. It has other field names, lists without pages, and a PUT that replaces all fields. The rules
// are the same as in version 2.

import { create } from '@bufbuild/protobuf'
import type { Handlers } from '#app.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import {
  CatalogTier,
  CatalogTierSchema,
  DeleteRepoRequestSchema,
  type Repo as RepoMessage,
  RepoSchema,
  SyncConfigSchema,
  type SyncConfig as SyncMessage,
} from '#gen/pinfold/registry/v1/repos_pb.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { toIso } from '#lib/timestamp.ts'
import { type Repo, toRepoResource } from './repos.model.ts'
import * as service from './repos.service.ts'
import type { SyncConfig } from './sync-config.model.ts'

const toRepo = messageOf(RepoSchema, { id: 'uid' })
const toSync = messageOf(SyncConfigSchema, { expiration: 'expirationTime' })

/** Catalog tiers of version 1, in the order of their numbers in version 2. */
const tiers: readonly number[] = [
  CatalogTier.UNKNOWN,
  CatalogTier.APPLICATION,
  CatalogTier.BASE,
  CatalogTier.FIPS,
  CatalogTier.AI,
  CatalogTier.DEVTOOLS,
  CatalogTier.COMMERCIAL,
]

export const reposV1: Handlers<typeof Registry> = {
  async createRepo(call, { parentId, repo, preventExisting }) {
    const input = fromMessage(repo)
    const make = preventExisting ? service.createRepo : service.createOrReplaceRepo
    return toMessage(await make(call, parentId, input))
  },

  async updateRepo(call, repo) {
    return toMessage(await service.replaceRepo(call, repo.id, fromMessage(repo)))
  },

  async listRepos(call, { uidp, name, id }) {
    const filter = { name: name || undefined }
    const repos = await wholeList(call, { uidp, id }, filter, service.listRepos)
    const shown = id === '' ? repos : await Promise.all(repos.map((repo) => withReadme(call, repo)))
    return { $typeName: 'pinfold.platform.registry.RepoList', items: shown.map(toMessage) }
  },
}

export const repoEventsV1: readonly EventBody[] = [
  eventBody(Registry.method.createRepo, toRepoResource, toMessage),
  eventBody(Registry.method.updateRepo, toRepoResource, toMessage),
  eventBody(Registry.method.deleteRepo, toDeletionResource, ({ uid }) => create(DeleteRepoRequestSchema, { id: uid })),
]

async function withReadme(call: Parameters<typeof service.getRepoReadme>[0], repo: Repo): Promise<service.FullRepo> {
  return { ...repo, readme: (await service.getRepoReadme(call, repo.uid)).content }
}

function fromMessage(message: RepoMessage | undefined) {
  const repo = required(message, 'repo')
  const catalogTier = tiers.indexOf(repo.catalogTier)
  if (catalogTier < 0) throw invalid({ field: 'catalog_tier', description: noKnownValue(CatalogTierSchema) })
  if (repo.customOverlay) {
    throw invalid({ field: 'custom_overlay', description: 'custom assembly is not enabled for this repo' })
  }
  const { name, description, bundles, aliases, activeTags, readme } = repo
  const syncConfig = repo.syncConfig && syncFromMessage(repo.syncConfig)
  return { name, description, catalogTier, bundles, aliases, activeTags, readme, syncConfig }
}

function syncFromMessage({ source, google, amazon, azure, expiration, syncApks }: SyncMessage): SyncConfig {
  const expirationTime = expiration && toIso(expiration)
  return { source, expirationTime, google, amazon, azure, syncApks, uniqueTags: false, gracePeriod: false }
}

function syncToMessage(sync: SyncConfig): SyncMessage {
  return toSync({ ...sync, syncApks: sync.syncApks === true })
}

function toMessage(repo: Repo & { readme?: string }): RepoMessage {
  return toRepo({
    readme: '',
    ...repo,
    catalogTier: tiers[repo.catalogTier] ?? CatalogTier.UNKNOWN,
    customOverlay: undefined,
    syncConfig: repo.syncConfig && syncToMessage(repo.syncConfig),
  })
}
