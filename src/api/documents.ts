// What is served besides the contract: health, metrics, the OpenAPI document and the issuer's documents. All are open.
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { issuerDocument } from '#issuer/discovery.ts'
import type { Door } from './door.ts'

const openApiFile = new URL('../../gen/openapi.json', import.meta.url)

/** Answers and returns true when the path is one of these documents. */
export type Documents = (req: IncomingMessage, res: ServerResponse) => boolean

/** `isDraining` turns readiness off, so that balancers stop sending while requests in flight finish. */
export function createDocuments(door: Door, isDraining: () => boolean): Documents {
  const { app, url } = door
  let openApi: string | undefined

  const documents: Record<string, (res: ServerResponse) => void | Promise<void>> = {
    '/healthz': (res) => send(res, 200, 'text/plain', 'ok\n'),
    '/readyz': async (res) => {
      const problem = isDraining() ? 'draining' : await problemOf(door)
      send(res, problem ? 503 : 200, 'text/plain', `${problem ?? 'ok'}\n`)
    },
    '/openapi.json': (res) => {
      openApi ??= JSON.stringify({
        ...(JSON.parse(readFileSync(openApiFile, 'utf8')) as object),
        servers: [{ url }],
      })
      send(res, 200, 'application/json', openApi)
    },
  }
  if (app.config.metrics) {
    documents['/metrics'] = async (res) => {
      send(res, 200, app.metrics.registry.contentType, await app.metrics.registry.metrics())
    }
  }

  return (req, res) => {
    const path = (req.url ?? '/').split('?', 1)[0]!
    const write = Object.hasOwn(documents, path) ? documents[path] : undefined
    const issued = write ? undefined : issuerDocument(path, url, app.keyring)
    if (!write && !issued) return false
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('allow', 'GET, HEAD')
      send(res, 405, 'text/plain', 'only GET\n')
    } else if (issued) {
      res.setHeader('cache-control', 'public, max-age=300')
      send(res, 200, 'application/json', JSON.stringify(issued))
    } else {
      Promise.try(write!, res).catch((error: unknown) => {
        app.log.error('document failed', { path, error })
        send(res, 500, 'text/plain', 'internal error\n')
      })
    }
    return true
  }
}

async function problemOf({ app }: Door): Promise<string | undefined> {
  try {
    await app.db.ping()
    return undefined
  } catch (error) {
    app.log.warn('not ready', { error })
    return 'the database cannot be reached'
  }
}

function send(res: ServerResponse, status: number, type: string, text: string): void {
  if (res.headersSent) return
  res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
  res.end(text)
}
