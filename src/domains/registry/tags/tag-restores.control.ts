import type { Handlers } from '#app.ts'
import {
  type TagRestore as TagRestoreMessage,
  TagRestoreSchema,
  TagRestoresService,
} from '#gen/pinfold/control/registry/v1/tag_restores_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { restoreTag, type TagRestore, toRestoreResource } from './tag-restores.service.ts'

const toRestore = messageOf(TagRestoreSchema)

export const tagRestores: Handlers<typeof TagRestoresService> = {
  restoreTag: async (call, { repoUid, tag, digest, reason }) =>
    toMessage(await restoreTag(call, { repoUid, tag, digest, reason })),
}

export const tagRestoreEvents: readonly EventBody[] = [
  eventBody(TagRestoresService.method.restoreTag, toRestoreResource, toMessage),
]

function toMessage(restore: TagRestore): TagRestoreMessage {
  return toRestore(restore)
}
