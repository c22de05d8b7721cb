import type { Call } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import { type ListQuery, wholeList } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { namedDetection } from '../advisories/advisories.model.ts'
import { listPublications, type Publication } from '../advisories/publication.service.ts'

export type DocumentFilter = { origin: string; aliases: readonly string[] }

const maxAliases = 1000

/** The published advisories, one document for each origin package that has some. */
export async function listDocuments(
  call: Call,
  { page, filter }: ListQuery<DocumentFilter>,
): Promise<Listed<Publication>> {
  if (filter.aliases.length > maxAliases) {
    throw invalid({ field: 'cves', description: `must hold at most ${maxAliases} different ids` })
  }
  return listPublications(call, page, filter)
}

/** All of them. Throws RESOURCE_EXHAUSTED when they are more than one answer may hold. */
export async function listAllDocuments(call: Call, filter: DocumentFilter): Promise<Publication[]> {
  return wholeList(call, { uidp: undefined, id: '' }, filter, listDocuments, weightOf)
}

/** There may be few documents with very many events. */
function weightOf({ advisories }: Publication): number {
  return advisories.reduce((sum, { events }) => sum + 1 + events.length, 1)
}

/** The document as both versions of the contract have it. No source that we import has a namespace. */
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
