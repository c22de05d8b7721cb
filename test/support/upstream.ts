// Registry that serves as an upstream. The test sets its behavior, and it counts its requests.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { digestOf } from './registry.ts'

/** Answers a request in place of the registry. Returns `true` if it did. */
export type Fault = (req: IncomingMessage, res: ServerResponse) => boolean

export type Content = { bytes: Buffer; mediaType: string }

/** Upstream with tags and contents for any repository name. It records every request as `METHOD path`. */
export async function startUpstream() {
  const tags = new Map<string, string>()
  const contents = new Map<string, Content>()
  const asked: string[] = []
  const authorizations: (string | undefined)[] = []
  let fault: Fault = () => false
  let knowsReferrers = true
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://upstream.invalid')
    asked.push(`${req.method} ${url.pathname}`)
    authorizations.push(req.headers.authorization)
    if (fault(req, res)) return
    const [, path, kind, reference] = /^\/v2\/(.+)\/(manifests|blobs|tags|referrers)\/([^/]+)$/.exec(url.pathname) ?? []
    if (path === undefined) return void res.writeHead(404).end()
    if (kind === 'tags') {
      res.setHeader('content-type', 'application/json')
      return void res.end(JSON.stringify({ name: path, tags: [...tags.keys()].sort() }))
    }
    if (kind === 'referrers') {
      if (!knowsReferrers) return void res.writeHead(404).end()
      res.setHeader('content-type', 'application/vnd.oci.image.index.v1+json')
      return void res.end(JSON.stringify({ schemaVersion: 2, manifests: about(contents, reference!) }))
    }
    const digest = tags.get(reference!) ?? reference!
    const content = contents.get(digest)
    // If a test sets only the digest of a tag, the tag has no content. It still answers HEAD.
    const known = content !== undefined || tags.has(reference!)
    if (!known) return void res.writeHead(404).end()
    res.writeHead(200, {
      'content-type': content?.mediaType ?? 'application/octet-stream',
      'docker-content-digest': digest,
      ...(content && { 'content-length': content.bytes.length }),
    })
    res.end(req.method === 'HEAD' ? undefined : content?.bytes)
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    asked,
    authorizations,
    tags,
    contents,
    /** Points a tag at a digest without content. Returns the digest. */
    move(tag: string, text: string): string {
      const digest = digestOf(text)
      tags.set(tag, digest)
      return digest
    },
    add(bytes: Buffer | string, mediaType: string): { mediaType: string; digest: string; size: number } {
      const content = { bytes: Buffer.from(bytes), mediaType }
      const digest = digestOf(content.bytes)
      contents.set(digest, content)
      return { mediaType, digest, size: content.bytes.length }
    },
    count: (start: string) => asked.filter((one) => one.startsWith(start)).length,
    forget: () => asked.splice(0),
    breakWith(next: Fault) {
      fault = next
    },
    forgetReferrers() {
      knowsReferrers = false
    },
    mend() {
      fault = () => false
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Referrers of a digest. */
function about(contents: Map<string, Content>, subject: string) {
  return [...contents].flatMap(([digest, { bytes, mediaType }]) => {
    if (!mediaType.includes('manifest')) return []
    return subjectIn(bytes) === subject ? [{ mediaType, digest, size: bytes.length }] : []
  })
}

function subjectIn(bytes: Buffer): string | undefined {
  try {
    return (JSON.parse(bytes.toString()) as { subject?: { digest: string } }).subject?.digest
  } catch {
    // A test may have stored content that is no manifest.
    return undefined
  }
}

export type TestUpstream = Awaited<ReturnType<typeof startUpstream>>

/** Settings that allow upstreams on this machine. */
export const localUpstreams = { upstreamsPrivate: ['127.0.0.1', 'localhost'], allowInsecureUpstreams: true }

/** Fault that answers with this status and these headers. */
export function answering(status: number, headers: Record<string, string> = {}): Fault {
  return (_req, res) => {
    res.writeHead(status, headers).end()
    return true
  }
}

/** Fault that requires a token from the upstream's own token service. `check` may refuse the token request. */
export function withTokens(url: () => string, check: (authorization: string | undefined) => boolean): Fault {
  return (req, res) => {
    const { pathname } = new URL(req.url ?? '/', 'http://upstream.invalid')
    if (pathname === '/token') {
      const good = check(req.headers.authorization)
      res.writeHead(good ? 200 : 401, { 'content-type': 'application/json' })
      res.end(good ? JSON.stringify({ token: 'good', expires_in: 300 }) : '{}')
      return true
    }
    if (req.headers.authorization === 'Bearer good') return false
    const challenge = `Bearer realm="${url()}/token",service="upstream",scope="repository:any:pull"`
    res.writeHead(401, { 'www-authenticate': challenge }).end()
    return true
  }
}
