import type { Handlers } from '#app.ts'
import {
  type ListTagsRequest,
  type Tag as TagMessage,
  TagSchema,
  TagsService,
} from '#gen/pinfold/registry/v2/tags_pb.ts'
import { creating, deleting, getting, listing } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { toIso } from '#lib/timestamp.ts'
import { shapes, type Tag, tagFields, toTagResource } from './tags.model.ts'
import * as service from './tags.service.ts'

const { method } = TagsService
const toTag = messageOf(TagSchema)
const rules = { fields: tagFields, defaultOrder: 'uid' }

export const tags: Handlers<typeof TagsService> = {
  getTag: getting(service.getTag, toMessage),
  listTags: listing(method.listTags, rules, filterOf, service.listTags, toMessage),
  createTag: creating(['parent', 'tag'], fromMessage, service.createTag, toMessage),
  deleteTag: deleting('uid', service.deleteTag),
}

export const tagEvents: readonly EventBody[] = [
  eventBody(method.createTag, toTagResource, toMessage),
  deletionBody(method.deleteTag),
]

function filterOf({ name, digest, updatedSince, ...request }: ListTagsRequest) {
  const asked =
    (request.includeReferrers ? shapes.referrers : 0) |
    (request.includeDates ? shapes.dates : 0) |
    (request.includeEpochs ? shapes.epochs : 0)
  return { name, digest, updatedSince: updatedSince ? toIso(updatedSince) : '', asked }
}

function fromMessage(tag: TagMessage | undefined) {
  return contentOf(tag, 'tag', 'name', 'digest', 'deprecated', 'bundles')
}

export function toMessage(tag: Tag): TagMessage {
  return toTag(service.bodyOf(tag))
}
