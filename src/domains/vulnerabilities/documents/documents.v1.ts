// Version 1 of the documents: all of them in one answer.
import { create } from '@bufbuild/protobuf'
import type { Call } from '#app.ts'
import {
  type Document,
  type DocumentFilter,
  type DocumentList,
  EventSchema,
} from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type Event, listAllDocuments, type Publication } from './documents.service.ts'

export async function listDocuments(call: Call, { id, cves }: DocumentFilter): Promise<DocumentList> {
  const found = await listAllDocuments(call, { origin: id, aliases: [...new Set(cves)] })
  return { $typeName: 'pinfold.platform.advisory.DocumentList', items: found.map(toMessage) }
}

function toMessage({ id, advisories }: Publication): Document {
  return {
    $typeName: 'pinfold.platform.advisory.Document',
    id,
    advisories: advisories.map(({ advisoryId, aliases, events }) => ({
      $typeName: 'pinfold.platform.advisory.Advisory',
      id: advisoryId,
      aliases,
      // Nothing that we take in says it.
      packageNamespace: '',
      events: events.map(toEvent),
    })),
  }
}

function toEvent({ createTime, type, data }: Event) {
  return create(EventSchema, {
    timestamp: timestamp(createTime),
    data: { case: type, value: type === 'detection' ? detectionOf(data) : data } as never,
  })
}

function detectionOf({ method, subpackage, component, ...rest }: Event['data']) {
  const names = {
    ...(subpackage === undefined ? {} : { subpackageName: subpackage }),
    ...(component === undefined ? {} : { componentName: component }),
  }
  return { type: { case: method, value: { ...rest, ...names } } }
}
