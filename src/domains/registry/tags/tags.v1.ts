// Version 1 of the tag API. It has other field names, lists without pages that hide no tags by default, and tags that point to
// nothing.

import { create } from '@bufbuild/protobuf'
import type { Handlers } from '#app.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { DeleteTagRequestSchema, type Tag as TagMessage, TagSchema } from '#gen/pinfold/registry/v1/tags_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { listMoves } from './tag-history.service.ts'
import { everyShape, maxRecords, shapes, toTagResource } from './tags.model.ts'
import * as service from './tags.service.ts'

const toMessage = messageOf(TagSchema, { id: 'uid', lastUpdated: 'updateTime' })

export const tagsV1: Handlers<typeof Registry> = {
  async createTag(call, { repoId, tag }) {
    return toMessage(await service.createTag(call, repoId, fromMessage(required(tag, 'tag'))))
  },

  async updateTag(call, tag) {
    return toMessage(await service.updateTag(call, tag.id, fromMessage(tag)))
  },

  deleteTag: deleting('id', service.deleteTag),

  async listTags(call, request) {
    const { uidp, id, name, digest, updatedSince } = request
    const since = updatedSince ? toIso(updatedSince) : ''
    const filter = { name, digest, updatedSince: since, asked: askedOf(request) }
    const tags = await wholeList(call, { uidp, id }, filter, service.listTags)
    return { $typeName: 'pinfold.platform.registry.TagList', items: tags.map(toMessage) }
  },

  async getRepoTagsSummary(call, request) {
    const summary = await service.getTagsSummary(call, request.repoId, askedOf(request))
    const told = 'latest' in summary && {
      lastUpdated: timestamp(summary.lastUpdated),
      latestTag: toMessage(summary.latest),
    }
    return {
      $typeName: 'pinfold.platform.registry.RepoTagsSummary',
      id: request.repoId,
      tagCount: BigInt(summary.count),
      latestVersion: 'latest' in summary ? summary.latestVersion : '',
      ...told,
    }
  },

  async listTagHistory(call, { parentId, start, end }) {
    const window = { from: start && toIso(start), before: end && toIso(end) }
    const moves = await listMoves(call, parentId, window, maxRecords)
    const items = moves.map(({ time, digest }) => {
      return { $typeName: 'pinfold.platform.registry.TagHistory', updateTimestamp: timestamp(time), digest } as const
    })
    return { $typeName: 'pinfold.platform.registry.TagHistoryList', items }
  },

  async getUpdateStatus(call, { repoId }) {
    const recentlyUpdated = await service.isRecentlyUpdated(call, repoId)
    return { $typeName: 'pinfold.platform.registry.UpdateStatus', recentlyUpdated }
  },
}

export const tagEventsV1: readonly EventBody[] = [
  eventBody(Registry.method.createTag, toTagResource, toMessage),
  eventBody(Registry.method.updateTag, toTagResource, toMessage),
  eventBody(Registry.method.deleteTag, toDeletionResource, ({ uid }) => create(DeleteTagRequestSchema, { id: uid })),
]

type Excluding = { excludeReferrers: boolean; excludeDates: boolean; excludeEpochs: boolean }

function askedOf({ excludeReferrers, excludeDates, excludeEpochs }: Excluding): number {
  const hidden =
    (excludeReferrers ? shapes.referrers : 0) | (excludeDates ? shapes.dates : 0) | (excludeEpochs ? shapes.epochs : 0)
  return everyShape & ~hidden
}

function fromMessage({ name, digest, deprecated, bundles }: TagMessage) {
  return { name, digest: digest || undefined, deprecated, bundles }
}
