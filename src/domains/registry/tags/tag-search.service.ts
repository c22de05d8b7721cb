import type { Call } from '#app.ts'
import { found, invalid } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import * as store from './tag-search.store.ts'
import type { Tag } from './tags.model.ts'

/** How many names one page looks at. A repo may have millions, and few of them may match. */
const mostNames = 10_000
const mostCharacters = 128

/** The tags of a repo by what their names begin with and have in them. A page may be short, and has a token all the same. */
export async function searchTags(
  call: Call,
  repoUid: string,
  page: Page,
  filter: store.NameFilter,
): Promise<Listed<Tag, undefined>> {
  checkFilter(filter)
  const { db } = call.app
  const { id } = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const last = page.after?.value ?? ''
  const end = await store.lastNameOf(db, id, filter, { last, most: mostNames })
  if (!end) return { items: [], total: undefined, next: '' }
  const tags = await store.tagsByName(db, id, filter, { last, upTo: end.name, limit: page.size + 1 })
  if (tags.length > page.size || !end.more) return toListed(call, page, tags, undefined)
  // The next page goes on behind the last name that was looked at, whether it matched or not.
  const at = { name: end.name, uid: '' }
  const { next } = toListed(call, { ...page, size: 1 }, [at, at], undefined)
  return { items: tags, total: undefined, next }
}

function checkFilter({ prefix, part }: store.NameFilter): void {
  if (prefix === '' && part === '') throw invalid({ field: 'part', description: 'or a prefix is required' })
  for (const [field, text] of Object.entries({ prefix, part })) {
    if (text.length > mostCharacters) {
      throw invalid({ field, description: `must have at most ${mostCharacters} characters` })
    }
  }
}
