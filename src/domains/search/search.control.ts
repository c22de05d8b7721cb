import type { Handlers } from '#app.ts'
import type { SearchResult, SearchService } from '#gen/pinfold/control/search/v1/search_pb.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type Result, resultFields } from './search.model.ts'
import { search as searchNames } from './search.service.ts'

const rules = { fields: resultFields, defaultOrder: 'rank', isFixed: true }

export const search: Handlers<typeof SearchService> = {
  async search(call, request) {
    const { query, kinds, scopeUid, perKind } = request
    const wanted = { query, kinds, scope: scopeUid, perKind }
    const page = readPage(call, request, rules, wanted)
    const found = await searchNames(call, page, wanted)
    const response = 'pinfold.control.search.v1.SearchResponse'
    return { ...listResponse(response, 'results', found, toMessage, request), incomplete: found.isIncomplete }
  },
}

function toMessage({ uid, updateTime, ...result }: Result): SearchResult {
  return {
    $typeName: 'pinfold.control.search.v1.SearchResult',
    ...result,
    resourceUid: uid,
    ...(updateTime !== '' && { updateTime: timestamp(updateTime) }),
  }
}
