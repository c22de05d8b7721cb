import type { Call, Handlers } from '#app.ts'
import {
  CatalogTier,
  CatalogTierSchema,
  type Repo as RepoMessage,
  RepoReadmeSchema,
  RepoSchema,
  ReposService,
  type SyncConfig as SyncMessage,
} from '#gen/pinfold/registry/v2/repos_pb.ts'
import { getting, listing } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { refuseOverlay } from './overlays.ts'
import { type Repo, repoFields, toReadmeResource, toRepoResource } from './repos.model.ts'
import * as service from './repos.service.ts'
import type { SyncConfig } from './sync-config.model.ts'

const { method } = ReposService
const toRepo = messageOf(RepoSchema)
const toReadme = messageOf(RepoReadmeSchema)
const rules = { fields: repoFields, defaultOrder: 'uid' }

export const repos: Handlers<typeof ReposService> = {
  getRepo: getting(service.getRepo, toMessage),
  listRepos: listing(
    method.listRepos,
    rules,
    ({ name }) => ({ name: name || undefined }),
    service.listRepos,
    toMessage,
  ),

  async createRepo(call, { parent, repo }) {
    return toMessage(await service.createRepo(call, parent, fromMessage(call, repo)))
  },

  async updateRepo(call, { repo, updateMask }) {
    const paths = updateMask?.paths ?? []
    const patch = { paths, value: fromMessage(call, repo, paths) }
    return toMessage(await service.updateRepo(call, repo?.uid ?? '', patch))
  },

  getRepoReadme: getting(service.getRepoReadme, toReadme),

  async updateRepoReadme(call, { repoReadme, updateMask }) {
    const { uid, content } = contentOf(repoReadme, 'repo_readme', 'uid', 'content')
    const patch = { paths: updateMask?.paths ?? [], value: { content } }
    return toReadme(await service.updateRepoReadme(call, uid, patch))
  },
}

export const repoEvents: readonly EventBody[] = [
  eventBody(method.createRepo, toRepoResource, toMessage),
  eventBody(method.updateRepo, toRepoResource, toMessage),
  deletionBody(method.deleteRepo),
  eventBody(method.updateRepoReadme, toReadmeResource, toReadme),
]

/** Fields of a repository in a request. An update uses only the fields in `paths`; a new repository uses all fields. */
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

/** Source of a repository in a request. Each request with a source starts the default duration of the copy anew. */
function syncFromMessage({ source, google, amazon, azure }: SyncMessage): SyncConfig {
  const others = { syncApks: undefined, uniqueTags: false, gracePeriod: false }
  return { source, google, amazon, azure, expirationTime: '', ...others }
}

function toMessage(repo: Repo): RepoMessage {
  return toRepo({ ...repo, customOverlay: undefined })
}
