import { create } from '@bufbuild/protobuf'
import type { Call } from '#app.ts'
import {
  type Document,
  DocumentEventSchema,
  type ListDocumentsRequest,
  type ListDocumentsResponse,
} from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type Event, listDocuments as list, type Publication } from './documents.service.ts'

const rules = { fields: { id: { column: 'id', sort: true } }, defaultOrder: 'id' } as const

export async function listDocuments(call: Call, request: ListDocumentsRequest): Promise<ListDocumentsResponse> {
  const filter = { origin: request.id, aliases: [...new Set(request.cves)] }
  const listed = await list(call, readList(call, request, rules, filter))
  return listResponse('pinfold.platform.advisory.v2.ListDocumentsResponse', 'documents', listed, toMessage, request)
}

function toMessage({ id, advisories }: Publication): Document {
  return {
    $typeName: 'pinfold.platform.advisory.v2.Document',
    id,
    advisories: advisories.map(({ advisoryId, aliases, events }) => ({
      $typeName: 'pinfold.platform.advisory.v2.DocumentAdvisory',
      id: advisoryId,
      aliases,
      // Nothing that we take in says it.
      packageNamespace: '',
      events: events.map(toEvent),
    })),
  }
}

function toEvent({ createTime, type, data }: Event) {
  return create(DocumentEventSchema, {
    timestamp: timestamp(createTime),
    data: { case: type, value: type === 'detection' ? detectionOf(data) : data } as never,
  })
}

/** Documents say of two members that they are names. */
function detectionOf({ method, subpackage, component, ...rest }: Event['data']) {
  const names = {
    ...(subpackage === undefined ? {} : { subpackageName: subpackage }),
    ...(component === undefined ? {} : { componentName: component }),
  }
  return { type: { case: method, value: { ...rest, ...names } } }
}
