// Version 1 of the documents: all of them in one answer.
import { create } from '@bufbuild/protobuf'
import type { Call } from '#app.ts'
import {
  type Document,
  type DocumentFilter,
  type DocumentList,
  DocumentSchema,
  EventSchema,
} from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { timestamp } from '#lib/timestamp.ts'
import { namedDetection } from '../advisories/advisories.model.ts'
import { type Event, listAllDocuments, type Publication } from './documents.service.ts'

const toDocument = messageOf(DocumentSchema)

export async function listDocuments(call: Call, { id, cves }: DocumentFilter): Promise<DocumentList> {
  const found = await listAllDocuments(call, { origin: id, aliases: [...new Set(cves)] })
  return { $typeName: 'pinfold.platform.advisory.DocumentList', items: found.map(toMessage) }
}

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
  return create(EventSchema, {
    timestamp: timestamp(createTime),
    data: { case: type, value: type === 'detection' ? namedDetection(data) : data } as never,
  })
}
