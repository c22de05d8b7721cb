// What is served besides the contract: health, metrics, the OpenAPI document and the issuer's documents. All are open.
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { Edge } from '#edge/arrival.ts'
import type { Door } from '#edge/doors.ts'
import { issuerDocuments } from '#issuer/discovery.ts'

const openApiFile = new URL('../../gen/openapi.json', import.meta.url)

type Write = (res: ServerResponse) => void | Promise<void>

/** The door of the documents. */
export function documentsDoor(edge: Edge): Door {
  const documents = new Map<string, Write>([...aboutServer(edge), ...aboutIssuer(edge)])
  return {
    name: 'documents',
    quiet: true,
    matches: (path) => documents.has(path),
    serve(arrival) {
      const { req, res, path } = arrival
      const method = `${arrival.verb} ${path}`
      arrival.method = { name: method, fullName: method }
      if (req.method === 'GET' || req.method === 'HEAD') return documents.get(path)!(res)
      res.setHeader('allow', 'GET, HEAD')
      send(res, 405, 'text/plain', 'only GET\n')
    },
    refuse({ res, path }, error) {
      edge.app.log.error('document failed', { path, error })
      send(res, 500, 'text/plain', 'internal error\n')
    },
  }
}

/** A server that is stopping is not ready, so that balancers stop sending while requests in flight finish. */
function aboutServer(edge: Edge): [path: string, Write][] {
  const { app, url, closing } = edge
  let openApi: string | undefined
  const documents: [string, Write][] = [
    ['/healthz', (res) => send(res, 200, 'text/plain', 'ok\n')],
    [
      '/readyz',
      async (res) => {
        const problem = closing.signal.aborted ? 'draining' : await problemOf(edge)
        send(res, problem ? 503 : 200, 'text/plain', `${problem ?? 'ok'}\n`)
      },
    ],
    [
      '/openapi.json',
      (res) => {
        openApi ??= JSON.stringify({
          ...(JSON.parse(readFileSync(openApiFile, 'utf8')) as object),
          servers: [{ url }],
        })
        send(res, 200, 'application/json', openApi)
      },
    ],
  ]
  const { registry } = app.metrics
  const metrics: Write = async (res) => send(res, 200, registry.contentType, await registry.metrics())
  return app.config.metrics ? [...documents, ['/metrics', metrics]] : documents
}

function aboutIssuer({ app, url }: Edge): [path: string, Write][] {
  return Object.entries(issuerDocuments(url, app.keyring)).map(([path, document]) => [
    path,
    (res) => {
      res.setHeader('cache-control', 'public, max-age=300')
      send(res, 200, 'application/json', JSON.stringify(document()))
    },
  ])
}

async function problemOf({ app }: Edge): Promise<string | undefined> {
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
