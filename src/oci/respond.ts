import type { Origin } from '#domains/outbox/emit-registry.ts'
import { isDigest } from '#lib/digest.ts'
import { OciError } from './errors.ts'
import type { Visit } from './visit.ts'

export type Headers = Record<string, string | number | string[]>

/** Header that identifies an OCI registry to clients. */
export const version = { 'docker-distribution-api-version': 'registry/2.0' } as const

/** Sends a response without a body. */
export function answer({ res }: Visit, status: number, headers: Headers = {}): void {
  res.writeHead(status, { 'content-length': 0, ...version, ...headers })
  res.end()
}

/** Sends a 200 response with a body, or without the body for HEAD. The content type is JSON unless `headers` has another type. */
export function answerWith({ req, res }: Visit, content: string | Uint8Array, headers: Headers = {}): void {
  const length = Buffer.byteLength(content)
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': length, ...headers })
  res.end(req.method === 'HEAD' ? undefined : content)
}

export const digestForm = 'the digest must be sha256: or sha512: and its hexadecimal digits in lower case'

/** Returns the text if it is a digest with a supported algorithm. Otherwise throws DIGEST_INVALID. */
export function requireDigest(text: string): string {
  if (isDigest(text)) return text
  throw new OciError('DIGEST_INVALID', digestForm, { detail: { digest: text.slice(0, 200) } })
}

/** Host, subdomain, path and view of a request, for events. */
export function originOf({ registry, whole, subdomain, view }: Visit): Origin {
  return { host: registry.host, subdomain, repository: whole, ...(view && { view: view.name }) }
}

/**
 * True if the client already has the current version, so that 304 is sufficient (RFC 9110, 13.1.2 and 13.1.3). `etag` includes
 * its quotes. `changed` is a time in ISO 8601, and is ignored if the client sends an etag.
 */
export function isUnchanged({ req: { headers } }: Visit, etag: string, changed?: string): boolean {
  const match = headers['if-none-match']
  if (match !== undefined) {
    return match === '*' || match.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
  }
  const since = Date.parse(headers['if-modified-since'] ?? '')
  return changed !== undefined && Math.floor(Date.parse(changed) / 1000) * 1000 <= since
}
