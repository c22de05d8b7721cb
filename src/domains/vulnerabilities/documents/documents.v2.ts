import { create } from '@bufbuild/protobuf'
import {
  type Document,
  DocumentEventSchema,
  DocumentSchema,
  SecurityAdvisoryService,
} from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { timestamp } from '#lib/timestamp.ts'
import { namedDetection } from '../advisories/advisories.model.ts'
import { type Event, listDocuments as list, type Publication } from './documents.service.ts'

const toDocument = messageOf(DocumentSchema)

export const listDocuments = listing(
  SecurityAdvisoryService.method.listDocuments,
  { fields: { id: { column: 'id', sort: true } }, defaultOrder: 'id' },
  ({ id, cves }) => ({ origin: id, aliases: [...new Set(cves)] }),
  list,
  toMessage,
)

function toMessage({ id, advisories }: Publication): Document {
  return toDocument({
    id,
    advisories: advisories.map(({ advisoryId, aliases, events }) => {
      // No source that we import has a namespace.
      return { id: advisoryId, aliases, packageNamespace: '', events: events.map(toEvent) }
    }),
  })
}

function toEvent({ createTime, type, data }: Event) {
  return create(DocumentEventSchema, {
    timestamp: timestamp(createTime),
    data: { case: type, value: type === 'detection' ? namedDetection(data) : data } as never,
  })
}
