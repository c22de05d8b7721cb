import type { Handlers } from '#app.ts'
import { type Tag as TagMessage, TagsService } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { aTag, shapes, type Tag, tagFields } from './tags.model.ts'
import * as service from './tags.service.ts'

const rules = { fields: tagFields, defaultOrder: 'uid' }

export const tags: Handlers<typeof TagsService> = {
  async getTag(call, { uid }) {
    return toMessage(await service.getTag(call, uid))
  },

  async listTags(call, request) {
    const { name, digest } = request
    const updatedSince = request.updatedSince ? toIso(request.updatedSince) : ''
    const asked =
      (request.includeReferrers ? shapes.referrers : 0) |
      (request.includeDates ? shapes.dates : 0) |
      (request.includeEpochs ? shapes.epochs : 0)
    const filter = { name, digest, updatedSince, asked }
    const listed = await service.listTags(call, readList(call, request, rules, filter))
    return listResponse('pinfold.platform.registry.v2.ListTagsResponse', 'tags', listed, toMessage, request)
  },

  async createTag(call, { parent, tag }) {
    if (!tag) throw invalid({ field: 'tag', description: 'is required' })
    const { name, digest, deprecated, bundles } = tag
    return toMessage(await service.createTag(call, parent, { name, digest, deprecated, bundles }))
  },

  async deleteTag(call, { uid }) {
    await service.deleteTag(call, uid)
    return empty
  },
}

export const tagEvents: readonly EventBody[] = [
  eventBody(TagsService.method.createTag, aTag, toMessage),
  deletionBody(TagsService.method.deleteTag),
]

export function toMessage(tag: Tag): TagMessage {
  return {
    $typeName: 'pinfold.platform.registry.v2.Tag',
    ...service.bodyOf(tag),
    createTime: timestamp(tag.createTime),
    updateTime: timestamp(tag.updateTime),
  }
}
