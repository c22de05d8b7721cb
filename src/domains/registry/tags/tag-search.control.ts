import type { Handlers } from '#app.ts'
import type { TagSearchService } from '#gen/pinfold/control/registry/v1/tag_search_pb.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { nameOrder } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { searchTags } from './tag-parts.service.ts'
import { shapes } from './tags.model.ts'
import { toMessage } from './tags.v2.ts'

const rules = { fields: nameOrder, defaultOrder: 'name' }

export const tagSearch: Handlers<typeof TagSearchService> = {
  async searchTags(call, request) {
    const { repoUid, prefix, part, ...asked } = request
    const shown =
      (asked.includeReferrers ? shapes.referrers : 0) |
      (asked.includeDates ? shapes.dates : 0) |
      (asked.includeEpochs ? shapes.epochs : 0)
    const filter = { prefix, part, asked: shown }
    const page = readPage(call, request, rules, [repoUid, filter])
    const listed = await searchTags(call, repoUid, page, filter)
    return listResponse('pinfold.control.registry.v1.SearchTagsResponse', 'tags', listed, toMessage, request)
  },
}
