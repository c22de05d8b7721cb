import type { Handlers } from '#app.ts'
import type { TagSearchService } from '#gen/pinfold/control/registry/v1/tag_search_pb.ts'
import { readPage } from '#lib/lists/paging.ts'
import { searchTags } from './tag-search.service.ts'
import { shapes, tagFields } from './tags.model.ts'
import { toMessage } from './tags.v2.ts'

const rules = { fields: tagFields, defaultOrder: 'name' }

export const tagSearch: Handlers<typeof TagSearchService> = {
  async searchTags(call, { repoUid, prefix, part, pageSize, pageToken, ...asked }) {
    const shown =
      (asked.includeReferrers ? shapes.referrers : 0) |
      (asked.includeDates ? shapes.dates : 0) |
      (asked.includeEpochs ? shapes.epochs : 0)
    const filter = { prefix, part, asked: shown }
    const page = readPage(call, { pageSize, pageToken, orderBy: '', skip: 0 }, rules, [repoUid, filter])
    const { items, next } = await searchTags(call, repoUid, page, filter)
    return {
      $typeName: 'pinfold.control.registry.v1.SearchTagsResponse',
      tags: items.map(toMessage),
      nextPageToken: next,
    }
  },
}
