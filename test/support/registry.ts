// Images for pushes, and a client of the registry that returns complete answers.
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { startServer } from '#api/server.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from './pinfold.ts'

export const types = {
  image: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  empty: 'application/vnd.oci.empty.v1+json',
  dockerImage: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerList: 'application/vnd.docker.distribution.manifest.list.v2+json',
}

export const digestOf = (content: Buffer | string, algorithm = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`

export type Reply = {
  status: number
  headers: Record<string, string | string[] | undefined>
  bytes: Buffer
  body: Json
}
export type Send = { body?: Buffer | string; headers?: Record<string, string>; token?: string | undefined }
export type Descriptor = { mediaType: string; digest: string; size: number } & Json

/** Client of the registry with `token`. Paths are relative to `/v2/`. */
export function registryClient(origin: string, token: string | undefined) {
  const call = (method: string, path: string, { body, headers = {}, ...other }: Send = {}): Promise<Reply> => {
    const shown = 'token' in other ? other.token : token
    return new Promise((resolve, reject) => {
      const authorization = shown === undefined ? {} : { authorization: `Bearer ${shown}` }
      const isStream = 'transfer-encoding' in headers
      const length = body === undefined || isStream ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const { hostname, port } = new URL(origin)
      const target = {
        hostname,
        port,
        method,
        path: path.startsWith('/') ? path : `/v2/${path}`,
        headers: { ...authorization, ...length, ...headers },
      }
      const req = request(target, (res) => {
        const chunks: Buffer[] = []
        res.on('data', (chunk: Buffer) => chunks.push(chunk))
        res.on('error', reject)
        res.once('end', () => {
          const bytes = Buffer.concat(chunks)
          const text = bytes.toString()
          const isJson = text.startsWith('{') && String(res.headers['content-type']).includes('json')
          resolve({ status: res.statusCode!, headers: res.headers, bytes, body: isJson ? JSON.parse(text) : {} })
        })
      })
      // A broken connection may emit several errors.
      req.on('error', reject)
      req.end(body)
    })
  }
  const ok = async (expected: number, method: string, path: string, send?: Send): Promise<Reply> => {
    const reply = await call(method, path, send)
    if (reply.status === expected) return reply
    throw new Error(`${method} ${path} answered ${reply.status}: ${reply.bytes.toString().slice(0, 2000)}`)
  }
  return {
    origin,
    token,
    call,
    /** Fails unless the answer has this status. */
    ok,
    /** Pushes a blob in one request. */
    async pushBlob(name: string, content: Buffer | string, mediaType = types.layer): Promise<Descriptor> {
      const digest = digestOf(content)
      await ok(201, 'POST', `${name}/blobs/uploads/?digest=${digest}`, { body: content })
      return { mediaType, digest, size: Buffer.byteLength(content) }
    },
    /** Pushes a manifest under a tag, or under its digest. */
    async pushManifest(name: string, manifest: Json | string, reference?: string): Promise<Descriptor> {
      const body = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
      const mediaType = (JSON.parse(body) as Json).mediaType as string
      const digest = digestOf(body)
      const headers = { 'content-type': mediaType }
      await ok(201, 'PUT', `${name}/manifests/${reference ?? digest}`, { body, headers })
      return { mediaType, digest, size: Buffer.byteLength(body) }
    },
    /** A small image whose layer no other image has. */
    async pushImage(name: string, reference?: string, extra: Json = {}): Promise<Descriptor> {
      const layer = await this.pushBlob(name, randomBytes(64))
      const config = await this.pushBlob(name, JSON.stringify({ architecture: 'amd64', os: 'linux' }), types.config)
      return this.pushManifest(name, imageOf(config, [layer], extra), reference)
    },
  }
}

export type RegistryClient = ReturnType<typeof registryClient>

export function imageOf(config: Descriptor, layers: Descriptor[], extra: Json = {}): Json {
  return { schemaVersion: 2, mediaType: types.image, config, layers, ...extra }
}

export function indexOf(manifests: Descriptor[], extra: Json = {}): Json {
  return { schemaVersion: 2, mediaType: types.index, manifests, ...extra }
}

/** Starts a server with the organization `acme`, an identity that can push there, and one that can only pull. */
export async function startRegistry(overrides: Parameters<typeof startPinfold>[0] = {}) {
  const pinfold = await startPinfold(overrides)
  const org = await pinfold.seed.group('', { name: 'acme' })
  const pusher = await pinfold.seed.member(org.uid, roleUids.push)
  const puller = await pinfold.seed.member(org.uid, roleUids.pull)
  const as = async (uid: string) => clientFor(pinfold, uid)
  return {
    ...pinfold,
    org,
    pusher: { uid: pusher.uid as string, ...(await as(pusher.uid)) },
    puller: { uid: puller.uid as string, ...(await as(puller.uid)) },
    registryOperator: await as(operatorUid),
    registryAs: as,
    nobody: registryClient(`http://127.0.0.1:${pinfold.port}`, undefined),
  }
}

/**
 * Starts a second server of the same application with other timeouts. The first one is used to prepare test data, without these
 * timeouts.
 */
export async function startHasty(
  { app, url }: Pick<Pinfold, 'app' | 'url'>,
  config: Partial<Pinfold['app']['config']>,
) {
  const server = await startServer({ ...app, config: { ...app.config, ...config, url } })
  return { port: server.port, [Symbol.asyncDispose]: () => server.close() }
}

export type TestRegistry = Awaited<ReturnType<typeof startRegistry>>

async function clientFor(pinfold: Pinfold, uid: string): Promise<RegistryClient> {
  const token = await pinfold.tokenFor(uid, { audience: new URL(pinfold.url).host })
  return registryClient(`http://127.0.0.1:${pinfold.port}`, token)
}

/** Code of a registry error. Fails unless the answer has the form of such an error. */
export function codeOf({ body, bytes }: Reply): string {
  const error = body.errors?.[0] as Json | undefined
  if (typeof error?.code === 'string' && typeof error.message === 'string') return error.code
  throw new Error(`not an error of OCI: ${bytes.toString().slice(0, 500)}`)
}
