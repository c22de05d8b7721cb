import type { Call } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import { type ListQuery, wholeList } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { namedDetection } from '../advisories/advisories.model.ts'
import { listPublications, type Publication } from '../advisories/publication.service.ts'

export type DocumentFilter = { origin: string; aliases: readonly string[] }

const maxAliases = 1000

/** Lists the published advisories. Each origin package with published advisories has one document. */
export async function listDocuments(
  call: Call,
  { page, filter }: ListQuery<DocumentFilter>,
): Promise<Listed<Publication>> {
  if (filter.aliases.length > maxAliases) {
    throw invalid({ field: 'cves', description: `must have at most ${maxAliases} different IDs` })
  }
  return listPublications(call, page, filter)
}

/** Lists all documents. Throws RESOURCE_EXHAUSTED if they exceed the limit of one answer. */
export async function listAllDocuments(call: Call, filter: DocumentFilter): Promise<Publication[]> {
  return wholeList(call, { uidp: undefined, id: '' }, filter, listDocuments, weightOf)
}

/** Size of a document in events, because a few documents can have very many events. */
function weightOf({ advisories }: Publication): number {
  return advisories.reduce((sum, { events }) => sum + 1 + events.length, 1)
}

/** The document in the format of both versions of the API. The namespace is empty, because no imported source has one. */
export function shownDocument({ id, advisories }: Publication) {
  return {
    id,
    advisories: advisories.map(({ advisoryId, aliases, events }) => ({
      id: advisoryId,
      aliases,
      packageNamespace: '',
      events: events.map(({ createTime, type, data }) => ({
        timestamp: timestamp(createTime),
        data: { case: type, value: type === 'detection' ? namedDetection(data) : data } as never,
      })),
    })),
  }
}
