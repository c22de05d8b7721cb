// Fake of AWS on loopback: version 4 signatures, and a Security Token Service that verifies them and returns the identity.
// Written from the AWS documentation, and tested with its example.
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Credentials = { keyId: string; secret: string; session?: string }
export type AwsCaller = { account: string; arn: string; userId: string }
type Answer = { status: number; body: string; headers?: Record<string, string> }

/** A request as text. `headers` are in the order in which they are sent. */
export type Written = { line: string; headers: [name: string, value: string][]; body: string }

const hmac = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest()
const hash = (text: string) => createHash('sha256').update(text).digest('hex')
const percentEncoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)

/** Signature of a request over the named headers. */
export function signatureOf(
  secret: string,
  { method, target, headers, body }: { method: string; target: string; headers: Record<string, string>; body: string },
  { names, scope, date }: { names: readonly string[]; scope: string; date: string },
): string {
  const [path, query = ''] = target.split('?')
  const parameters = [...new URLSearchParams(query)].map(
    ([name, value]) => `${percentEncoded(name)}=${percentEncoded(value)}`,
  )
  const lines = names.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`)
  const canonical = [method, path, parameters.sort().join('&'), lines.join(''), names.join(';'), hash(body)].join('\n')
  const [day, region, service, end] = scope.split('/') as [string, string, string, string]
  const key = hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), service), end)
  return hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash(canonical)}`).toString('hex')
}

export type Signing = {
  host: string
  audience: string
  identity: string
  credentials: Credentials
  now?: Date
  region?: string
  service?: string
  product?: string
  target?: string
  method?: string
  body?: string
  /** Headers to set before the request is signed. `undefined` removes a header. */
  headers?: Record<string, string | undefined>
  /** Headers that are sent without being signed. */
  unsigned?: readonly string[]
}

/** A signed GetCallerIdentity request that has not been sent. */
export function signCallerIdentity({ credentials, ...signing }: Signing): Written {
  const { host, audience, identity, product = 'Pinfold', method = 'POST', body = '', unsigned = [] } = signing
  const { region = 'us-east-1', service = 'sts', target = '/?Action=GetCallerIdentity&Version=2011-06-15' } = signing
  const date = (signing.now ?? new Date()).toISOString().replace(/[-:]|\.\d+/g, '')
  const all: Record<string, string | undefined> = {
    Host: host,
    'User-Agent': 'Go-http-client/1.1',
    'Content-Length': String(body.length),
    Accept: 'application/json',
    'X-Amz-Date': date,
    'X-Amz-Security-Token': credentials.session,
    [`${product}-Audience`]: audience,
    [`${product}-Identity`]: identity,
    ...signing.headers,
  }
  const headers = Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined)
  const left = ['user-agent', 'content-length', ...unsigned]
  const names = headers.map(([name]) => name.toLowerCase()).filter((name) => !left.includes(name))
  names.sort()
  const scope = `${date.slice(0, 8)}/${region}/${service}/aws4_request`
  const lower = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
  const signature = signatureOf(credentials.secret, { method, target, headers: lower, body }, { names, scope, date })
  const authorization = `AWS4-HMAC-SHA256 Credential=${credentials.keyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`
  return { line: `${method} ${target} HTTP/1.1`, headers: [...headers, ['Authorization', authorization]], body }
}

export function textOf({ line, headers, body }: Written, end = '\r\n'): string {
  return `${[line, ...headers.map(([name, value]) => `${name}: ${value}`)].join(end)}${end}${end}${body}`
}

/** Encodes like `base64.URLEncoding` of Go. */
export function blobOf(written: Written | string): string {
  const text = typeof written === 'string' ? written : textOf(written)
  return Buffer.from(text).toString('base64').replaceAll('+', '-').replaceAll('/', '_')
}

/** Starts a Security Token Service with these credentials and their identities. */
export async function startAwsSts(users: readonly (Credentials & AwsCaller)[]) {
  const fake = {
    url: '',
    host: '',
    seen: [] as { method: string; target: string; headers: IncomingHttpHeaders; body: string }[],
    /** Replaces the answer of the service. */
    answer: undefined as Answer | undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const fault = (status: number, Code: string): Answer => ({
    status,
    body: JSON.stringify({ Error: { Code, Message: 'the secret text of AWS', Type: 'Sender' } }),
  })
  const judge = ({ method, target, headers, body }: (typeof fake.seen)[number]): Answer => {
    const [, keyId, scope, names, signature] =
      /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(
        headers.authorization ?? '',
      ) ?? []
    const user = users.find((one) => one.keyId === keyId)
    if (!user || !scope || !names) return fault(403, 'InvalidClientTokenId')
    const sent = headers as Record<string, string>
    const signed = { names: names.split(';'), scope, date: sent['x-amz-date'] ?? '' }
    if (signature !== signatureOf(user.secret, { method, target, headers: sent, body }, signed)) {
      return fault(403, 'SignatureDoesNotMatch')
    }
    if (headers['x-amz-security-token'] !== user.session) return fault(403, 'InvalidClientTokenId')
    const asked = new URLSearchParams(target.includes('?') ? target.slice(target.indexOf('?')) : body)
    if (asked.get('Action') !== 'GetCallerIdentity') return fault(400, 'InvalidAction')
    const { account: Account, arn: Arn, userId: UserId } = user
    const GetCallerIdentityResult = { Account, Arn, UserId }
    const ResponseMetadata = { RequestId: '0b0cc2b4-0b5f-4f4c-8b1e-0f3d9e8c5a11' }
    return {
      status: 200,
      body: JSON.stringify({ GetCallerIdentityResponse: { GetCallerIdentityResult, ResponseMetadata } }),
    }
  }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const one = { method: req.method!, target: req.url!, headers: req.headers, body }
      fake.seen.push(one)
      const { status, body: text, headers } = fake.answer ?? judge(one)
      res.writeHead(status, { 'content-type': 'application/json', connection: 'close', ...headers }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  fake.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  fake.url = `http://${fake.host}`
  return fake
}
