import type { Call } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { type AdvisoryEvent, listPublications, type Publication } from '../advisories/publication.service.ts'

export type { Publication } from '../advisories/publication.service.ts'
export type Event = AdvisoryEvent

const maxAliases = 1000

/** The published advisories, one document for each origin package that has some. */
export async function listDocuments(
  call: Call,
  { page, filter }: ListQuery<{ origin: string; aliases: readonly string[] }>,
): Promise<Listed<Publication>> {
  if (filter.aliases.length > maxAliases) {
    throw invalid({ field: 'cves', description: `must hold at most ${maxAliases} different ids` })
  }
  return listPublications(call, page, filter)
}
