// Client of another registry, with the parts of the protocol that bundles need. Sends the password to the registry and to its
// token service, but never to the target of a redirect.
import { createWriteStream, openAsBlob } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { WrongRecord } from '#sources/values.ts'
import { checkDestination } from '../framework/api-client.ts'
import { unreachableReason } from '../framework/unreachable.ts'

export type Credentials = { user: string; password: string }

const askMs = 30_000
const copyMs = 600_000
const maxToken = 64 * 1024

type Repository = {
  /** Reads the content at a path of the repository. Throws if the content has more than `most` bytes. */
  read(path: string, most: number): Promise<Buffer>
  download(path: string, file: string, most: number): Promise<void>
  /** Uploads a blob, unless the registry already has it. */
  putBlob(digest: string, content: Blob): Promise<void>
  /** Uploads a file. Calls `sent` with the number of bytes sent so far, which starts again from 0 if the upload is repeated. */
  putFile(digest: string, file: string, sent: (bytes: number) => void): Promise<void>
  putManifest(reference: string, content: Buffer, mediaType: string): Promise<void>
}

type Request = { method?: string; headers?: Record<string, string>; body?: Blob | Buffer; ms?: number }

/**
 * Opens a client for one repository. Its functions throw WrongRecord, whose message has no secrets. HTTP without TLS is used only
 * for a registry on this machine.
 */
export function repositoryAt(registry: string, path: string, credentials: Credentials | undefined): Repository {
  const stays = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/.test(registry)
  const base = new URL(`${stays ? 'http' : 'https'}://${registry}/v2/${path}/`)
  let authorization: string | undefined

  const once = async (url: URL, { method = 'GET', headers = {}, body, ms = askMs }: Request) => {
    const given = authorization === undefined || url.origin !== base.origin ? {} : { authorization }
    try {
      return await fetch(url, {
        method,
        headers: { ...headers, ...given },
        ...(body ? { body: body instanceof Blob ? body : new Uint8Array(body) } : {}),
        // Registries redirect only downloads. If the redirect leads to another origin, fetch removes the authorization header.
        redirect: method === 'GET' ? 'follow' : 'manual',
        signal: AbortSignal.timeout(ms),
      })
    } catch (error) {
      const { code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
      const why = typeof code === 'string' ? `: ${unreachableReason(error).says}` : ''
      throw new WrongRecord(`${registry} cannot be reached${why}`)
    }
  }
  const ask = async (url: URL, request: Request, expected: readonly number[], mayPush: boolean) => {
    let answer = await once(url, request)
    if (answer.status === 401) {
      const challenge = answer.headers.get('www-authenticate') ?? ''
      await answer.body?.cancel()
      authorization = await authorize(challenge, `repository:${path}:pull${mayPush ? ',push' : ''}`, credentials, base)
      answer = await once(url, request)
    }
    if (expected.includes(answer.status)) return answer
    await answer.body?.cancel()
    const why =
      answer.status === 401 || answer.status === 403
        ? ': the credentials are missing or not sufficient; run docker login, or pinfold docker configure for a Pinfold registry'
        : ''
    throw new WrongRecord(`${registry}/${path} answered ${answer.status}${why}`)
  }
  const putBlob = async (digest: string, content: Blob) => {
    const found = await ask(new URL(`blobs/${digest}`, base), { method: 'HEAD' }, [200, 404], true)
    if (found.status === 200) return
    const begun = await ask(new URL('blobs/uploads/', base), { method: 'POST' }, [202], true)
    await begun.body?.cancel()
    const to = URL.parse(begun.headers.get('location') ?? '', base.href)
    if (to?.origin !== base.origin)
      throw new WrongRecord(`${registry} redirects uploads to another host, which is not supported`)
    to.searchParams.set('digest', digest)
    const headers = { 'content-type': 'application/octet-stream' }
    await (await ask(to, { method: 'PUT', headers, body: content, ms: copyMs }, [201], true)).body?.cancel()
  }
  return {
    async read(part, most) {
      const chunks: Uint8Array[] = []
      const headers = { accept: 'application/vnd.oci.image.manifest.v1+json, application/octet-stream' }
      const answer = await ask(new URL(part, base), { headers }, [200], false)
      for await (const chunk of bounded(answer, most)) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
    async download(part, file, most) {
      const answer = await ask(new URL(part, base), { ms: copyMs }, [200], false)
      await pipeline(bounded(answer, most), createWriteStream(file, { mode: 0o600 }))
    },
    putBlob,
    putFile: async (digest, file, sent) => putBlob(digest, new WatchedBlob(await openAsBlob(file), sent)),
    async putManifest(reference, content, mediaType) {
      const url = new URL(`manifests/${reference}`, base)
      const headers = { 'content-type': mediaType }
      await (await ask(url, { method: 'PUT', headers, body: content }, [201], true)).body?.cancel()
    },
  }
}

/** Blob that reports how many bytes were read. Unlike a stream, a blob has a length. */
class WatchedBlob extends Blob {
  readonly #sent: (bytes: number) => void
  constructor(content: Blob, sent: (bytes: number) => void) {
    super([content])
    this.#sent = sent
  }

  override stream(): ReturnType<Blob['stream']> {
    let bytes = 0
    const count = (chunk: Uint8Array<ArrayBuffer>, to: TransformStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      bytes += chunk.length
      this.#sent(bytes)
      to.enqueue(chunk)
    }
    return super.stream().pipeThrough(new TransformStream({ transform: count }))
  }
}

async function* bounded(answer: Response, most: number): AsyncGenerator<Uint8Array> {
  let size = 0
  try {
    for await (const chunk of answer.body ?? []) {
      size += chunk.length
      if (size > most) throw new WrongRecord(`a response has more than ${most} bytes`)
      yield chunk
    }
  } catch (error) {
    if (error instanceof WrongRecord) throw error
    throw new WrongRecord('the connection broke off during a response')
  }
}

/** Authorization header for the registry's challenge: the password, or a token from its token service. */
async function authorize(
  challenge: string,
  scope: string,
  credentials: Credentials | undefined,
  base: URL,
): Promise<string | undefined> {
  const basic = credentials && `Basic ${Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')}`
  if (/^basic\b/i.test(challenge)) return basic
  const word = (name: string) => new RegExp(`[\\s,]${name}="([^"]*)"`, 'i').exec(challenge)?.[1]
  const realm = /^bearer\s/i.test(challenge) ? URL.parse(word('realm') ?? '') : null
  if (!realm) throw new WrongRecord(`${base.host} asks for an unsupported kind of authentication`)
  checkDestination(realm)
  const service = word('service')
  if (service !== undefined) realm.searchParams.set('service', service)
  realm.searchParams.set('scope', scope)
  try {
    const headers = basic === undefined ? {} : { authorization: basic }
    const answer = await fetch(realm, { headers, redirect: 'manual', signal: AbortSignal.timeout(askMs) })
    const chunks: Uint8Array[] = []
    for await (const chunk of bounded(answer, maxToken)) chunks.push(chunk)
    const { token, access_token: other } = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const given: unknown = token ?? other
    if (answer.ok && typeof given === 'string' && /^[\x21-\x7e]+$/.test(given)) return `Bearer ${given}`
  } catch {
    // The original error is not shown, since it may contain credentials.
  }
  throw new WrongRecord(
    `${realm.host} refused a token for ${base.host}${credentials ? '' : ', because no credentials are configured'}; run docker login ${base.host}`,
  )
}
