// GET /docs: the API reference, for readers without the source code. `npm run gen` writes it to docs/api.
import type { Edge } from '#edge/arrival.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { retryHeaders } from '#lib/errors.ts'
import { listAssets, readAsset } from '#lib/files/assets.ts'
import { toAppError } from '../errors.ts'
import { send } from '../ui/page.ts'
import { policy } from './policy.ts'

const path = '/docs'

/** Entry point of the reference. */
export function referenceEntryPoint(edge: Edge): EntryPoint {
  const pages = createPages()
  return {
    name: 'docs',
    methods: withVerbs([path]),
    deadlineMs: edge.app.config.requestTimeoutMs,
    matches: (asked) => asked === path || asked.startsWith(`${path}/`),
    async serve(arrival) {
      arrival.named(path)
      const { req } = arrival
      if (req.method !== 'GET' && req.method !== 'HEAD') {
        return send(arrival, 405, 'text/plain', 'only GET is allowed\n', { allow: 'GET, HEAD' })
      }
      sendReference(arrival, await pages(arrival.path.slice(path.length + 1)))
    },
    refuse(arrival, error) {
      const known = toAppError(error)
      if (known.http >= 500)
        edge.app.failures.request(edge.app.log, 'page request failed', error, { requestId: arrival.requestId })
      send(arrival, known.http, 'text/plain', `${known.message}\n`, retryHeaders(known))
    },
  }
}

function sendReference(arrival: HttpArrival, page: string | undefined): void {
  if (page === undefined) {
    send(arrival, 404, 'text/plain', `page not found; ${path} lists all pages\n`)
    return
  }
  send(arrival, 200, 'text/html; charset=utf-8', page, {
    'cache-control': 'public, max-age=300',
    'content-security-policy': policy,
    'referrer-policy': 'no-referrer',
  })
}

/**
 * Pages by name. The name of the index is empty. Each page is rendered at its first request and then cached, since there is a
 * fixed number of pages.
 */
function createPages(): (name: string) => Promise<string | undefined> {
  const files = new Map<string, string>([['errors', 'docs/errors.md']])
  const folder = 'docs/api/'
  for (const file of listAssets(folder)) {
    const name = file.replace(/\.md$/, '')
    files.set(name === 'README' ? '' : name, folder + file)
  }
  const made = new Map<string, string>()
  return async (name) => {
    const file = files.get(name)
    if (!file) return undefined
    const known = made.get(name)
    if (known !== undefined) return known
    const { renderPage } = await import('./render.ts')
    const page = renderPage(readAsset(file).toString(), linkOf)
    made.set(name, page)
    return page
  }
}

/** Target of a link: converts a file name to the path of its page. */
function linkOf(href: string): string {
  const [, name, anchor = ''] = /^(?:\.\.\/)?([\w.]+)\.md(#.*)?$/.exec(href) ?? []
  if (name === undefined) return href
  return name === 'README' ? path + anchor : `${path}/${name}${anchor}`
}
