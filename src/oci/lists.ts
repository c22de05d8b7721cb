// Lists repositories (/v2/_catalog) and the tags of a repository (/v2/<name>/tags/list, distribution specification, "Listing
// Tags").
import { type NamePage, tagNamesAs } from '#domains/policy/views/view-lists.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { catalogPage } from '#domains/registry/repos/catalog.service.ts'
import { freeTags } from '#domains/registry/tags/tag-history.service.ts'
import { tagNames } from '#domains/registry/tags/tags.service.ts'
import { allow, listable, seesOnlyFreeTags } from './access.ts'
import { nextLink, numberOf } from './parameters.ts'
import { answerWith, version } from './respond.ts'
import { listingFor } from './views/lists.ts'
import type { Visit } from './visit.ts'

/** Most names in one response. If there are more, a Link header has the URL of the next page. */
const [maxRepos, maxTags] = [1000, 10_000]

/**
 * Lists the repositories that the caller is allowed to list, in byte order after `last`. A page may have fewer names than
 * requested even if a next page exists.
 */
export async function listRepositories(visit: Visit): Promise<void> {
  const scopes = listable(visit)
  const { query, call, subdomain } = visit
  const most = Math.min(numberOf(visit, 'n') ?? maxRepos, maxRepos)
  const wanted = { after: query.get('last') ?? '', most, subdomain }
  const { names, next } = most > 0 ? await catalogPage(call.app.db, scopes, wanted) : { names: [], next: undefined }
  answerWith(visit, JSON.stringify({ repositories: names }), {
    ...version,
    ...linkTo(visit, '/v2/_catalog', most, next),
  })
}

/** Lists tags in byte order after `last`. In a view, a page may have fewer tags than requested even if a next page exists. */
export async function listTagNames(visit: Visit): Promise<void> {
  const repo = await allow(visit, 'tags.read')
  const { written } = visit
  const most = Math.min(numberOf(visit, 'n') ?? maxTags, maxTags)
  const { names, next } = most > 0 ? await pageOf(visit, repo, most) : { names: [], next: undefined }
  answerWith(
    visit,
    JSON.stringify({ name: written, tags: names }),
    linkTo(visit, `/v2/${written}/tags/list`, most, next),
  )
}

function linkTo(visit: Visit, path: string, most: number, next: string | undefined): { link?: string } {
  return next === undefined ? {} : { link: nextLink(visit, path, { n: String(most), last: next }) }
}

async function pageOf(visit: Visit, repo: RepoRef, size: number): Promise<NamePage> {
  const { db } = visit.call.app
  const last = visit.query.get('last') ?? ''
  const among = seesOnlyFreeTags(visit, repo) ? freeTags : undefined
  const listing = await listingFor(visit, repo)
  if (listing) return tagNamesAs(db, repo, listing, { last, most: size, among })
  const found = await tagNames(db, repo, last, size + 1, among)
  const names = found.slice(0, size)
  return { names, next: found.length > size ? names.at(-1) : undefined }
}
