// /v2/_catalog: the repositories that the visitor may list, as clients of registries ask for them.
import { catalogPage } from '#domains/registry/repos/catalog.service.ts'
import { listable } from './access.ts'
import { nextLink, numberOf } from './parameters.ts'
import type { Visit } from './visit.ts'

/** How many names one answer holds at most, also when the client does not say; the Link header leads to the rest. */
const maxNames = 1000

/** In the order of their bytes, from `last` on. An answer may hold fewer than asked for and still lead to more. */
export async function listRepositories(visit: Visit): Promise<void> {
  const places = listable(visit)
  const { query, res, req, call, subdomain } = visit
  const most = Math.min(numberOf(visit, 'n') ?? maxNames, maxNames)
  const wanted = { after: query.get('last') ?? '', most, subdomain }
  const { names, next } = most > 0 ? await catalogPage(call.app.db, places, wanted) : { names: [], next: undefined }
  const text = JSON.stringify({ repositories: names })
  res.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'docker-distribution-api-version': 'registry/2.0',
    ...(next === undefined ? {} : { link: nextLink(visit, '/v2/_catalog', { n: String(most), last: next }) }),
  })
  res.end(req.method === 'HEAD' ? undefined : text)
}
