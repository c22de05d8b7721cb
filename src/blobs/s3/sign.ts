// AWS signature version 4 for S3, in the headers of a request or in the query of a URL. See
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
import { createHash, createHmac } from 'node:crypto'

export type Credentials = {
  accessKeyId: string
  secretAccessKey: string
  /** Session token of temporary credentials. */
  sessionToken?: string | undefined
  /** Time of expiry, in milliseconds since 1970. */
  expires?: number | undefined
}

export type Unsigned = {
  method: string
  host: string
  /** Path of the request, already encoded by `encodePath`. */
  path: string
  query: readonly (readonly [name: string, value: string])[]
  /** Headers of the request, with names in lower case. All of them are signed. */
  headers: Readonly<Record<string, string>>
}

export type Signer = {
  /** Signed headers to send, including those of the request. `payload` is the SHA-256 of the body, in hex. */
  headersFor(request: Unsigned, credentials: Credentials, payload: string, now: Date): Record<string, string>
  /** Query of a signed URL that is valid for a number of seconds. The URL needs no signed headers. */
  queryFor(request: Unsigned, credentials: Credentials, seconds: number, now: Date): string
}

/**
 * Creates a signer. It caches the signing key of the day, since computing the key takes longer than the rest of the signature.
 */
export function createSigner(region: string, service = 's3'): Signer {
  let kept: { secret: string; day: string; key: Buffer } | undefined

  const keyFor = (secret: string, day: string): Buffer => {
    if (kept?.secret !== secret || kept.day !== day) {
      const steps = [day, region, service, 'aws4_request']
      kept = { secret, day, key: steps.reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`)) }
    }
    return kept.key
  }
  const sign = (canonical: string, time: string, secret: string): string => {
    const scope = scopeOf(time)
    return hmac(keyFor(secret, time.slice(0, 8)), [algorithm, time, scope, sha256(canonical)].join('\n')).toString(
      'hex',
    )
  }
  const scopeOf = (time: string): string => `${time.slice(0, 8)}/${region}/${service}/aws4_request`

  return {
    headersFor({ method, host, path, query, headers }, credentials, payload, now) {
      const time = timeOf(now)
      const sent: Record<string, string> = { ...headers, host, 'x-amz-content-sha256': payload, 'x-amz-date': time }
      if (credentials.sessionToken) sent['x-amz-security-token'] = credentials.sessionToken
      const names = Object.keys(sent).sort()
      const lines = names.map((name) => `${name}:${sent[name]!.trim().replace(/ +/g, ' ')}\n`).join('')
      const canonical = [method, path, queryOf(query), lines, names.join(';'), payload].join('\n')
      const signature = sign(canonical, time, credentials.secretAccessKey)
      sent.authorization = `${algorithm} Credential=${credentials.accessKeyId}/${scopeOf(time)}, SignedHeaders=${names.join(';')}, Signature=${signature}`
      return sent
    },

    queryFor({ method, host, path, query }, credentials, seconds, now) {
      const time = timeOf(now)
      const asked = [
        ...query,
        ['X-Amz-Algorithm', algorithm],
        ['X-Amz-Credential', `${credentials.accessKeyId}/${scopeOf(time)}`],
        ['X-Amz-Date', time],
        ['X-Amz-Expires', String(seconds)],
        ['X-Amz-SignedHeaders', 'host'],
        ...(credentials.sessionToken ? [['X-Amz-Security-Token', credentials.sessionToken]] : []),
      ] as const
      const text = queryOf(asked as Unsigned['query'])
      const canonical = [method, path, text, `host:${host}\n`, 'host', 'UNSIGNED-PAYLOAD'].join('\n')
      return `${text}&X-Amz-Signature=${sign(canonical, time, credentials.secretAccessKey)}`
    },
  }
}

const algorithm = 'AWS4-HMAC-SHA256'

/** Encodes a path for S3. Letters, digits, -._~ and slashes are not encoded. */
export const encodePath = (path: string): string => path.split('/').map(encode).join('/')

/** Encoded query. Its parameters have the order that the signature requires. */
export const queryOf = (query: Unsigned['query']): string =>
  query
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&')

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

const timeOf = (now: Date): string => now.toISOString().replace(/[-:]|\.\d+/g, '')
