// Second server of the demo, on loopback: a registry that the mirrors copy from, and a page that shows the webhooks it received.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { App } from '#app.ts'
import type { Config } from '#config.ts'
import { readFact, writeFact } from '#db/facts.ts'
import { hasOrganizations } from '#domains/iam/groups/groups.service.ts'
import { NotServedYet, openExisting } from '#open-database.ts'
import { type DemoImage, demoImage, manifestType } from './images.ts'
import { packagesAt } from './packages.ts'

/** Repositories of the second registry. Each has its source packages, and the ages of its builds in days by tag. */
const catalog: Readonly<Record<string, { sources: readonly string[]; tags: Readonly<Record<string, number>> }>> = {
  'library/alpine': { sources: ['busybox'], tags: { '3.20.1': 70, '3.20.2': 40, '3.20.3': 3, latest: 3 } },
  'library/nginx': { sources: ['nginx', 'pcre2', 'curl'], tags: { '1.26.1': 60, '1.26.2': 12, stable: 12 } },
  'library/node': { sources: ['nodejs', 'nghttp2'], tags: { '20.15.0': 55, '20.15.1': 8, lts: 8 } },
}

/** Repository that answers with an error, so the demo has a mirror that fails. */
const failing = 'library/postgres'

/** Settings of a server with the demo. Without settings of its own, it downloads nothing. */
export function demoConfig(config: Config, env: NodeJS.ProcessEnv): Config {
  return { ...config, ...(env.PINFOLD_VULNERABILITY_SYNC_HOURS ? {} : { vulnerabilitySyncHours: 0 }) }
}

/** Settings that let the server call its second server on loopback. */
export function withPeer(config: Config): Config {
  return {
    ...config,
    allowInsecureSinks: true,
    allowInsecureUpstreams: true,
    sinksPrivate: [...config.sinksPrivate, host],
    upstreamsPrivate: [...config.upstreamsPrivate, host],
  }
}

const host = '127.0.0.1'

/**
 * True if the database is empty or has the demo. A server with other data must not call programs on its own machine, so it gets
 * no second server.
 */
export async function mayHavePeer(config: Config): Promise<boolean> {
  try {
    const { db, close } = await openExisting(config)
    try {
      return (await readFact(db, 'demo_peer')) !== undefined || !(await hasOrganizations(db))
    } finally {
      await close()
    }
  } catch (error) {
    // The start of the server reports other reasons why the database cannot be used.
    return error instanceof NotServedYet
  }
}

/** `keepPort` stores the port, which marks the database as one with the demo. */
export type DemoPeer = AsyncDisposable & { url: string; keepPort(): Promise<void> }

/** Starts the second server. It gets the port that it had at the last start, unless another program has taken it. */
export async function startPeer({ db }: Pick<App, 'db'>): Promise<DemoPeer> {
  const registry = registryOf(await contents())
  const received: Received[] = []
  const server = createServer((req, res) => {
    const pathname = (req.url ?? '/').split('?', 1)[0]!
    if (pathname.startsWith('/v2/')) return void registry(req, res, pathname)
    if (req.method === 'POST') return void receive(req, res, pathname, received)
    return void showPage(res, received)
  })
  const listen = async (port: number) => {
    server.listen(port, host)
    await once(server, 'listening')
  }
  const stored = Number((await readFact(db, 'demo_peer')) ?? 0)
  await listen(stored).catch(() => listen(0))
  const { port } = server.address() as AddressInfo
  const keepPort = () => db.tx((tx) => writeFact(tx, 'demo_peer', String(port)))
  if (stored !== 0 && port !== stored) await keepPort()
  return {
    url: `http://${host}:${port}`,
    keepPort,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Contents = {
  tags: ReadonlyMap<string, ReadonlyMap<string, string>>
  blobs: Map<string, Buffer>
  manifests: Map<string, string>
}

async function contents(): Promise<Contents> {
  const [blobs, manifests] = [new Map<string, Buffer>(), new Map<string, string>()]
  const add = (image: DemoImage): string => {
    for (const [digest, content] of image.blobs) blobs.set(digest, content)
    manifests.set(image.digest, image.manifest)
    return image.digest
  }
  const tags = new Map<string, Map<string, string>>()
  for (const [path, { sources, tags: ages }] of Object.entries(catalog)) {
    const digests = new Map<string, string>()
    for (const [tag, daysAgo] of Object.entries(ages)) {
      const title = path.replace('/', '-')
      const created = new Date(Date.UTC(2026, 0, 90 - daysAgo))
      const packages = packagesAt(sources, daysAgo)
      const image = await demoImage({ title, version: String(90 - daysAgo), packages, fillerBytes: 40_000, created })
      digests.set(tag, add(image))
    }
    tags.set(path, digests)
  }
  return { tags, blobs, manifests }
}

/** Registry that can only be read. */
function registryOf({ tags, blobs, manifests }: Contents) {
  return (req: IncomingMessage, res: ServerResponse, pathname: string): void => {
    const answer = (status: number, type: string, body: string | Buffer, more: Record<string, string> = {}) => {
      res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...more })
      res.end(req.method === 'HEAD' ? undefined : body)
    }
    if (pathname === '/v2/') return void answer(200, 'application/json', '{}')
    const [, path = '', kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs|tags)\/([^/]+)$/.exec(pathname) ?? []
    if (path === failing) return void answer(503, 'application/json', '{"errors":[{"code":"UNAVAILABLE"}]}')
    const ofRepo = tags.get(path)
    if (kind === 'tags' && ofRepo) {
      return void answer(200, 'application/json', JSON.stringify({ name: path, tags: [...ofRepo.keys()].sort() }))
    }
    const digest = ofRepo?.get(reference) ?? reference
    const content = ofRepo && (kind === 'manifests' ? manifests.get(digest) : blobs.get(digest))
    if (content === undefined) {
      const message = 'the demo registry has no such content'
      return void answer(404, 'application/json', JSON.stringify({ errors: [{ code: 'NAME_UNKNOWN', message }] }))
    }
    const type = kind === 'manifests' ? manifestType : 'application/octet-stream'
    return void answer(200, type, content, { 'docker-content-digest': digest })
  }
}

type Received = { time: string; type: string; subject: string; body: string }
const mostReceived = 200
const mostBytes = 64 * 1024

/** Accepts an event. Events for `/broken` are refused, so the demo has an endpoint that fails. */
async function receive(
  req: IncomingMessage,
  res: ServerResponse,
  pathname: string,
  received: Received[],
): Promise<void> {
  let body = ''
  for await (const chunk of req) if (body.length < mostBytes) body += String(chunk)
  if (pathname === '/broken') {
    res.writeHead(503, { 'content-type': 'text/plain' }).end('The demo endpoint is out of order on purpose.\n')
    return
  }
  const header = (name: string) => String(req.headers[name] ?? '')
  received.unshift({ time: new Date().toISOString(), type: header('ce-type'), subject: header('ce-subject'), body })
  received.length = Math.min(received.length, mostReceived)
  res.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n')
}

function showPage(res: ServerResponse, received: readonly Received[]): void {
  const rows = received.map(({ time, type, subject, body }) => {
    const cells = [time, type, subject].map((text) => `<td>${escaped(text)}</td>`).join('')
    return `<tr>${cells}<td><details><summary>Body</summary><pre>${escaped(body)}</pre></details></td></tr>`
  })
  const table = `<table><thead><tr><th>Time (UTC)</th><th>Event</th><th>Subject</th><th>Content</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  }
  res.writeHead(200, headers).end(`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Webhook receiver · Pinfold demo</title><style>
:root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:24px;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0}pre{white-space:pre-wrap}
</style></head><body><h1>Webhook receiver</h1>
<p>Pinfold sends the events of the organization to this page of the demo. Reload the page to see new events.</p>
${received.length === 0 ? '<p>No events received since the start.</p>' : table}</body></html>`)
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replace(/[&<>"]/g, (one) => escapes[one]!)
