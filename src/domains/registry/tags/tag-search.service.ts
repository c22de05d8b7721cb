import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { found, invalid } from '#lib/errors.ts'
import { type Listed, listedUpTo, type Page, toListed } from '#lib/lists/paging.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import type { NameFilter } from './tag-parts.model.ts'
import { type FoundTags, findByPart, type Wanted } from './tag-parts.service.ts'
import * as store from './tag-search.store.ts'
import type { Tag } from './tags.model.ts'

/** How many names one page looks at in the order of names. A repo may have millions, and few of them may match. */
const mostNames = 10_000
const mostCharacters = 128

/** The tags of a repo by what their names begin with and have in them. A page may be short, and has a token all the same. */
export async function searchTags(
  call: Call,
  repoUid: string,
  page: Page,
  filter: NameFilter,
): Promise<Listed<Tag, number | undefined>> {
  checkFilter(filter)
  const { db } = call.app
  const { id } = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const wanted = { last: page.after?.value ?? '', limit: page.skip + page.size + 1 }
  const { desc } = page.order
  // The index of parts is read forward only.
  const byPart = filter.part === '' || desc ? undefined : await findByPart(db, id, filter, wanted)
  const matching = byPart ?? (await findByName(db, id, filter, { ...wanted, desc }))
  const tags = matching.tags.slice(page.skip)
  const total = await countTags(db, id, filter)
  if (tags.length > page.size) return toListed(call, page, tags, total)
  // The next page goes on behind the last name that was looked at, whether it matched or not.
  const toSkip = Math.max(0, page.skip - matching.tags.length)
  return listedUpTo(call, page, { items: tags, total, last: matching.upTo, toSkip })
}

type InOrder = Wanted & { desc: boolean }

async function findByName(reader: Reader, repo: number, filter: NameFilter, wanted: InOrder): Promise<FoundTags> {
  const { last, limit, desc } = wanted
  const end = await store.lastNameOf(reader, repo, filter, { last, desc, most: mostNames })
  if (!end) return { tags: [], upTo: undefined }
  const tags = await store.tagsByName(reader, repo, filter, { last, desc, upTo: end.name, limit })
  return { tags, upTo: end.more ? end.name : undefined }
}

/** Undefined where so many tags have the prefix that counting would take long. */
async function countTags(reader: Reader, repo: number, filter: NameFilter): Promise<number | undefined> {
  const end = await store.lastNameOf(reader, repo, filter, { last: '', desc: false, most: mostNames + 1 })
  if (!end) return 0
  return end.more ? undefined : store.countByName(reader, repo, filter)
}

function checkFilter({ prefix, part }: NameFilter): void {
  if (prefix === '' && part === '') throw invalid({ field: 'part', description: 'or a prefix is required' })
  for (const [field, text] of Object.entries({ prefix, part })) {
    if (text.length > mostCharacters) {
      throw invalid({ field, description: `must have at most ${mostCharacters} characters` })
    }
  }
}
