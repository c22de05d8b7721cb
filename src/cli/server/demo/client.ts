// Client of the demo. It sends API and registry requests as the operator, as a person or as a workload, like any other client.
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import { signAccessToken } from '#issuer/sign-token.ts'
import type { DemoImage } from './images.ts'
import { manifestType } from './images.ts'

/** Fields of answers that the demo reads. */
export type Answer = {
  uid: string
  name: string
  totalCount: string
  roles: Answer[]
  run: object
  code: string
}
export type DemoClient = {
  get(path: string): Promise<Answer>
  post(path: string, body?: object): Promise<Answer>
  patch(path: string, body: object): Promise<Answer>
  /** Pushes an image to a repository, under the tags or by its digest. */
  push(path: string, image: DemoImage, tags?: readonly string[]): Promise<void>
  /** Pulls a manifest. Returns the status, since the server refuses some pulls of the demo. */
  pull(path: string, reference: string): Promise<number>
}

/** Client of an identity. */
export async function clientAs(app: App, server: Server, subject: string): Promise<DemoClient> {
  const input = { issuer: server.url, subject, now: app.clock() }
  const [api, registry] = await Promise.all([
    signAccessToken(app.keyring, { ...input, audience: server.url }),
    signAccessToken(app.keyring, { ...input, audience: new URL(server.url).host }),
  ])
  const base = server.localUrl
  const call = async (method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<Answer> => {
    const res = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${api}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await res.text()
    if (!res.ok) throw new Error(`the demo could not be added: ${method} ${path} answered ${res.status} ${text}`)
    return JSON.parse(text) as Answer
  }
  const send = (method: 'GET' | 'POST' | 'PUT', path: string, type: string, body?: string | Buffer) =>
    fetch(`${base}/v2/${path}`, {
      method,
      headers: { authorization: `Bearer ${registry}`, 'content-type': type },
      ...(body === undefined ? {} : { body }),
    })
  const put = async (method: 'POST' | 'PUT', path: string, type: string, body: string | Buffer): Promise<void> => {
    const res = await send(method, path, type, body)
    const text = await res.text()
    if (!res.ok) throw new Error(`the demo could not be pushed: ${method} ${path} answered ${res.status} ${text}`)
  }
  // Images of a repository share blobs, so each blob is sent once.
  const sent = new Set<string>()
  return {
    get: (path) => call('GET', path),
    post: (path, body = {}) => call('POST', path, body),
    patch: (path, body) => call('PATCH', path, body),
    async push(path, image, tags = [image.digest]) {
      const missing = [...image.blobs].filter(([digest]) => !sent.has(`${path}@${digest}`))
      await Promise.all(
        missing.map(([digest, content]) =>
          put('POST', `${path}/blobs/uploads/?digest=${digest}`, 'application/octet-stream', content),
        ),
      )
      for (const [digest] of missing) sent.add(`${path}@${digest}`)
      for (const tag of tags) await put('PUT', `${path}/manifests/${tag}`, manifestType, image.manifest)
    },
    async pull(path, reference) {
      const res = await send('GET', `${path}/manifests/${reference}`, manifestType)
      await res.arrayBuffer()
      return res.status
    },
  }
}
