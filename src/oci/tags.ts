// /v2/<name>/tags/list (distribution specification, "Listing Tags").

import { type NamePage, tagNamesAs } from '#domains/policy/views/view-lists.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { freeTags } from '#domains/registry/tags/public-images.service.ts'
import { tagNames } from '#domains/registry/tags/tags.service.ts'
import { allow, seesOnlyFreeTags } from './access.ts'
import { nextLink, numberOf } from './parameters.ts'
import { listingFor } from './views/lists.ts'
import type { Visit } from './visit.ts'

/** How many names one answer holds at most, also when the client does not say; the Link header leads to the rest. */
const maxNames = 10_000

/** In the order of their bytes, from `last` on. In a view an answer may hold fewer than asked for and still lead to more. */
export async function listTagNames(visit: Visit): Promise<void> {
  const repo = await allow(visit, 'tags.read')
  const { res, req, written } = visit
  const size = Math.min(numberOf(visit, 'n') ?? maxNames, maxNames)
  const { names, next } = size > 0 ? await pageOf(visit, repo, size) : { names: [], next: undefined }
  const text = JSON.stringify({ name: written, tags: names })
  const link = next === undefined ? {} : { n: String(size), last: next }
  res.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(next === undefined ? {} : { link: nextLink(visit, `/v2/${written}/tags/list`, link) }),
  })
  res.end(req.method === 'HEAD' ? undefined : text)
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
