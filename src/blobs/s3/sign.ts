// Signature version 4 of AWS, as S3 has it: in the header of a request, or in the query of an address to hand out.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
import { createHash, createHmac } from 'node:crypto'

export type Credentials = {
  accessKeyId: string
  secretAccessKey: string
  /** Of credentials that last for a while only. */
  sessionToken?: string | undefined
  /** Milliseconds since 1970. */
  expires?: number | undefined
}

export type Unsigned = {
  method: string
  host: string
  /** As it is sent, encoded by `encodePath`. */
  path: string
  query: readonly (readonly [name: string, value: string])[]
  /** All of them are signed; names in lower case. */
  headers: Readonly<Record<string, string>>
}

export type Signer = {
  /** The headers to send, those of the request included. `payload` is the SHA-256 of the body, in hex. */
  headersFor(request: Unsigned, credentials: Credentials, payload: string, now: Date): Record<string, string>
  /** The query to ask with, for so many seconds, without a header of ours. */
  queryFor(request: Unsigned, credentials: Credentials, seconds: number, now: Date): string
}

/** Keeps the key of the day, which costs more than all the rest. */
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

/** What S3 takes as it is: letters, digits and -._~, and slashes between parts. */
export const encodePath = (path: string): string => path.split('/').map(encode).join('/')

/** Sorted as it has to be to be signed. */
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
