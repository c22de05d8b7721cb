import type { Call, Handlers } from '#app.ts'
import {
  CatalogTier,
  CatalogTierSchema,
  type RepoReadme as ReadmeMessage,
  type Repo as RepoMessage,
  ReposService,
  type SyncConfig as SyncMessage,
} from '#gen/pinfold/registry/v2/repos_pb.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { refuseOverlay } from './overlays.ts'
import { aReadme, aRepo, type Repo, type RepoReadme, repoFields } from './repos.model.ts'
import * as service from './repos.service.ts'
import type { SyncConfig } from './sync-config.model.ts'

const rules = { fields: repoFields, defaultOrder: 'uid' }

export const repos: Handlers<typeof ReposService> = {
  async getRepo(call, { uid }) {
    return toMessage(await service.getRepo(call, uid))
  },

  async listRepos(call, request) {
    const name = request.name || undefined
    const listed = await service.listRepos(call, readList(call, request, rules, { name }))
    return listResponse('pinfold.platform.registry.v2.ListReposResponse', 'repos', listed, toMessage, request)
  },

  async createRepo(call, { parent, repo }) {
    return toMessage(await service.createRepo(call, parent, fromMessage(call, repo)))
  },

  async updateRepo(call, { repo, updateMask }) {
    const paths = updateMask?.paths ?? []
    const patch = { paths, value: fromMessage(call, repo, paths) }
    return toMessage(await service.updateRepo(call, repo?.uid ?? '', patch))
  },

  async getRepoReadme(call, { uid }) {
    return toReadme(await service.getRepoReadme(call, uid))
  },

  async updateRepoReadme(call, { repoReadme, updateMask }) {
    if (!repoReadme) throw invalid({ field: 'repo_readme', description: 'is required' })
    const { uid, content } = repoReadme
    const patch = { paths: updateMask?.paths ?? [], value: { content } }
    return toReadme(await service.updateRepoReadme(call, uid, patch))
  },
}

export const repoEvents: readonly EventBody[] = [
  eventBody(ReposService.method.createRepo, aRepo, toMessage),
  eventBody(ReposService.method.updateRepo, aRepo, toMessage),
  deletionBody(ReposService.method.deleteRepo),
  eventBody(ReposService.method.updateRepoReadme, aReadme, toReadme),
]

/** Of an update, only what is in `paths` counts; of a new repo everything does. */
function fromMessage({ app }: Call, repo: RepoMessage | undefined, paths?: readonly string[]) {
  if (!repo) throw invalid({ field: 'repo', description: 'is required' })
  const counts = (name: string) => paths?.some((path) => path.split('.')[0] === name) ?? true
  if (repo.customOverlay && counts('custom_overlay')) refuseOverlay(repo.customOverlay, app.vendor)
  if (counts('catalog_tier') && !Object.values<number>(CatalogTier).includes(repo.catalogTier)) {
    throw invalid({ field: 'catalog_tier', description: noKnownValue(CatalogTierSchema) })
  }
  const { name, description, catalogTier, bundles, aliases, activeTags } = repo
  const syncConfig = repo.syncConfig && syncFromMessage(repo.syncConfig)
  return { name, description, catalogTier, bundles, aliases, activeTags, syncConfig }
}

/** Whoever names it has it copied for as long as usual from now on. */
function syncFromMessage({ source, google, amazon, azure }: SyncMessage): SyncConfig {
  const others = { syncApks: undefined, uniqueTags: false, gracePeriod: false }
  return { source, google, amazon, azure, expirationTime: '', ...others }
}

function syncToMessage({ expirationTime, syncApks, ...sync }: SyncConfig): SyncMessage {
  const $typeName = 'pinfold.platform.registry.v2.SyncConfig'
  return { $typeName, ...sync, expirationTime: timestamp(expirationTime!) }
}

function toMessage(repo: Repo): RepoMessage {
  return {
    $typeName: 'pinfold.platform.registry.v2.Repo',
    uid: repo.uid,
    name: repo.name,
    description: repo.description,
    catalogTier: repo.catalogTier as RepoMessage['catalogTier'],
    bundles: repo.bundles,
    aliases: repo.aliases,
    activeTags: repo.activeTags,
    ...(repo.syncConfig ? { syncConfig: syncToMessage(repo.syncConfig) } : {}),
    createTime: timestamp(repo.createTime),
    updateTime: timestamp(repo.updateTime),
  }
}

function toReadme(readme: RepoReadme): ReadmeMessage {
  return { $typeName: 'pinfold.platform.registry.v2.RepoReadme', ...readme }
}
