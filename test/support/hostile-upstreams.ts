// Upstreams that try what they should not, each in one way; a canary says whether somebody came where nobody may.
import { randomBytes } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { digestOf, imageOf, indexOf, types } from './registry.ts'
import { answering, type Fault, type TestUpstream } from './upstream.ts'

/** A server at an address of this machine that no upstream may lead to. */
export async function startCanary() {
  let connections = 0
  const server = createServer((_req, res) => res.end('{"token":"good"}'))
  server.on('connection', () => connections++)
  server.listen(0, '127.0.0.2')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.2:${port}`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** An image at the upstream under a tag, of which nothing is wrong. */
export function publishAt(there: TestUpstream, tag: string) {
  const layer = there.add(randomBytes(300), types.layer)
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux', at: randomBytes(8) }), types.config)
  const image = there.add(JSON.stringify(imageOf(config, [layer])), types.image)
  there.tags.set(tag, image.digest)
  return { image, layer, config }
}

type Published = ReturnType<typeof publishAt>
type Hostile = { there: TestUpstream; good: Published; canary: string }

const raw =
  (answer: (res: ServerResponse) => void): Fault =>
  (_req, res) => {
    answer(res)
    return true
  }

/** Bytes for as long as somebody reads them. */
const endless = (mediaType: string, headers: Record<string, string> = {}): Fault =>
  raw((res) => {
    res.writeHead(200, { 'content-type': mediaType, ...headers })
    const chunk = Buffer.alloc(64 * 1024, 'a')
    const go = (): void => {
      while (!res.destroyed && res.write(chunk));
      if (!res.destroyed) res.once('drain', go)
    }
    go()
  })

/** Where there is a manifest to be had by GET, or a blob. */
const at =
  (what: '/manifests/' | '/blobs/', fault: Fault): Fault =>
  (req, res) =>
    req.method === 'GET' && req.url?.includes(what) === true ? fault(req, res) : false
const replace = (there: TestUpstream, digest: string, bytes: Buffer | string): void => {
  there.contents.set(digest, { ...there.contents.get(digest)!, bytes: Buffer.from(bytes) })
}
/** A manifest that is all right but for what it says, under the tag. */
const saying =
  (text: string, mediaType: string = types.image) =>
  ({ there }: Hostile) => {
    there.tags.set('1.0', there.add(text, mediaType).digest)
  }
const challenge = (realm: string) => answering(401, { 'www-authenticate': `Bearer realm="${realm}",service="x"` })

/** What each does, before it is pulled from; nothing of it may be stored but what is right. */
export const hostile: Readonly<Record<string, (at: Hostile) => void>> = {
  'leads to an address of the cloud': ({ there }) =>
    there.breakWith(answering(307, { location: 'http://169.254.169.254/latest/meta-data' })),
  'leads to a private server': ({ there, canary }) => there.breakWith(answering(307, { location: `${canary}/v2/` })),
  'leads to a private server for manifests': ({ there, canary }) =>
    there.breakWith(at('/manifests/', answering(302, { location: `${canary}/manifest` }))),
  'leads to a private server for blobs': ({ there, canary }) =>
    there.breakWith(at('/blobs/', answering(302, { location: `${canary}/blob` }))),
  'asks for a token at a private server': ({ there, canary }) => there.breakWith(challenge(`${canary}/token`)),
  'asks for a token at a file': ({ there }) => there.breakWith(challenge('file:///etc/passwd')),
  'asks for a token for ever': ({ there }) =>
    there.breakWith((req, res) => {
      const isToken = req.url?.startsWith('/token') === true
      if (!isToken) return challenge(`${there.url}/token`)(req, res)
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ token: 'never-good' }))
      return true
    }),
  'leads round in a circle': ({ there }) =>
    there.breakWith((req, res) => answering(307, { location: `${there.url}${req.url}` })(req, res)),
  'has a manifest without its digest': ({ there, good }) => replace(there, good.image.digest, '{"schemaVersion":2}'),
  'has blobs without their digest': ({ there, good }) => {
    replace(there, good.layer.digest, randomBytes(300))
    replace(there, good.config.digest, '{}')
  },
  'sends a manifest that does not end': ({ there }) => there.breakWith(at('/manifests/', endless(types.image))),
  'sends a blob that does not end': ({ there }) => there.breakWith(at('/blobs/', endless(types.layer))),
  'sends a blob that does not end and says that it does': ({ there, good }) =>
    there.breakWith(
      at('/blobs/', endless(types.layer, { 'content-length': String(2 ** 40), etag: good.layer.digest })),
    ),
  'breaks off in the middle': ({ there }) =>
    there.breakWith(
      at(
        '/blobs/',
        raw((res) => void res.writeHead(200, { 'content-length': 300 }).write('a', () => res.destroy())),
      ),
    ),
  'closes each connection': ({ there }) => there.breakWith(raw((res) => res.destroy())),
  'is broken': ({ there }) => there.breakWith(answering(500)),
  'answers with a page': ({ there }) =>
    there.breakWith(raw((res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'))),
  'answers with too many headers': ({ there }) =>
    there.breakWith(
      raw((res) => {
        for (let i = 0; i < 500; i++) res.setHeader(`x-${i}`, 'a'.repeat(100))
        res.writeHead(200).end('{}')
      }),
    ),
  'says another digest than it has': ({ there }) =>
    there.breakWith((req, res) => {
      if (req.method !== 'HEAD') return false
      return answering(200, { 'docker-content-digest': digestOf('another'), 'content-type': types.image })(req, res)
    }),
  'says a digest that is a path': ({ there }) =>
    there.breakWith(
      answering(200, { 'docker-content-digest': 'sha256:../../etc/passwd', 'content-type': types.image }),
    ),
  'packs what it sends': ({ there, good }) =>
    there.breakWith(
      at(
        '/manifests/',
        raw((res) => {
          res.writeHead(200, { 'content-type': types.image, 'content-encoding': 'gzip' })
          res.end(gzipSync(there.contents.get(good.image.digest)!.bytes))
        }),
      ),
    ),
  'has a manifest that is no JSON': saying('not a manifest'),
  'has a manifest of great depth': saying(`${'['.repeat(200_000)}${']'.repeat(200_000)}`),
  'has an image and index in one': saying(JSON.stringify({ ...imageOf(at0(), []), manifests: [] })),
  'has an index of an index without end': (all) => {
    const digest = digestOf('nowhere')
    saying(JSON.stringify(indexOf([{ mediaType: types.index, digest, size: 1e15 }])), types.index)(all)
  },
  'has two members of one name': saying('{"schemaVersion":2,"schemaVersion":2,"config":{},"layers":[]}'),
  'lists a thousand layers that are not there': saying(
    JSON.stringify(
      imageOf(
        at0(),
        Array.from({ length: 1000 }, (_, i) => ({ mediaType: types.layer, digest: digestOf(String(i)), size: 1 })),
      ),
    ),
  ),
}

function at0() {
  return { mediaType: types.config, digest: digestOf('config'), size: 6 }
}
