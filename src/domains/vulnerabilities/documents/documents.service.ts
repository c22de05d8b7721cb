import type { Call } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import { type ListQuery, wholeList } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { type AdvisoryEvent, listPublications, type Publication } from '../advisories/publication.service.ts'

export type { Publication } from '../advisories/publication.service.ts'
export type Event = AdvisoryEvent

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
