// /v2/<name>/tags/list (distribution specification, "Listing Tags").

import { freeTags } from '#domains/registry/repos/public-images.service.ts'
import { tagNames } from '#domains/registry/tags/tags.service.ts'
import { allow, seesOnlyFreeTags } from './access.ts'
import { nextLink, numberOf } from './parameters.ts'
import type { Visit } from './visit.ts'

/** How many names one answer holds at most, also when the client does not say; the Link header leads to the rest. */
const maxNames = 10_000

/** In the order of their bytes, from `last` on. */
export async function listTagNames(visit: Visit): Promise<void> {
  const repo = await allow(visit, 'tags.read')
  const { query, res, req, call, name } = visit
  const size = Math.min(numberOf(visit, 'n') ?? maxNames, maxNames)
  const among = seesOnlyFreeTags(visit, repo) ? freeTags : undefined
  const found = size > 0 ? await tagNames(call.app.db, repo, query.get('last') ?? '', size + 1, among) : []
  const tags = found.slice(0, size)
  const last = found.length > size ? tags.at(-1) : undefined
  const text = JSON.stringify({ name, tags })
  res.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(last === undefined ? {} : { link: nextLink(visit, `/v2/${name}/tags/list`, { n: String(size), last }) }),
  })
  res.end(req.method === 'HEAD' ? undefined : text)
}
