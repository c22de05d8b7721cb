// Parser of AWS requests that a client has signed but not sent. Only AWS can verify the signature. So this file decides which
// requests the server may send to AWS: one harmless call, signed for this server and for one identity.
import { refused } from './outside-token.ts'

const maxLength = 16 * 1024
const maxHeaders = 30
const maxBody = 1024
/** Limits for the signing time, in milliseconds: how far it may be in the future, and how far in the past. */
const maxAhead = 5 * 60_000
const maxAge = 15 * 60_000

/** Values that a signed request must contain. */
export type AwsRules = {
  host: string
  region: string
  /** Product names with which the names of the binding headers may begin, such as `Pinfold`. */
  products: readonly string[]
  audiences: readonly string[]
}

export type AwsRequest = {
  /** Request to send to AWS unchanged. It contains only signed parts. */
  request: { target: string; headers: Readonly<Record<string, string>>; body: string }
  /** Audience and identity in the signed headers. */
  audience: string
  identity: string
  /** Signing time, in milliseconds since 1970. */
  time: number
}

/** Names of the two headers, in lower case, that bind a signature to an audience and to an identity. */
function bindingHeaders(product: string): { audience: string; identity: string } {
  const prefix = product.toLowerCase()
  return { audience: `${prefix}-audience`, identity: `${prefix}-identity` }
}

/** Decodes and checks a signed request. Throws UNAUTHENTICATED for an invalid request. Does not check the signing time. */
export function readAwsRequest(credential: string, rules: AwsRules): AwsRequest {
  const { line, headers, body } = parse(decode(credential))
  const target = targetOf(line, headers, body)
  const { scopeDate, region, signed, authorization } = readAuthorization(headers.get('authorization'))

  if (headers.get('host')?.toLowerCase() !== rules.host.toLowerCase()) throw refused('signed for another host')
  if (region !== rules.region) throw refused('signed for another region')
  const bound = rules.products.map(bindingHeaders).find(({ audience }) => signed.includes(audience))
  const needed = ['host', 'x-amz-date', bound?.audience ?? '', bound?.identity ?? '']
  if (!needed.every((name) => signed.includes(name))) throw refused('a required header is not signed')
  if (!signed.every((name) => headers.has(name) && (needed.includes(name) || mayBeSigned.includes(name)))) {
    throw refused('a signed header is missing or not allowed')
  }
  if (headers.has('x-amz-security-token') && !signed.includes('x-amz-security-token'))
    throw refused('the session token is not signed')
  const date = headers.get('x-amz-date')!
  if (date.slice(0, 8) !== scopeDate) throw refused('signed for another date')
  const audience = headers.get(bound!.audience)!
  if (!rules.audiences.includes(audience)) throw refused('signed for another audience')

  const passed = signed.filter((name) => name !== 'host').map((name) => [name, headers.get(name)!] as const)
  const own = body === '' ? {} : { 'content-type': form }
  return {
    request: { target, headers: { accept: json, ...own, ...Object.fromEntries(passed), authorization }, body },
    audience,
    identity: headers.get(bound!.identity)!,
    time: timeOf(date),
  }
}

/** Throws UNAUTHENTICATED if the signing time is too far in the past or in the future. */
export function checkSigningTime({ time }: AwsRequest, now: Date): void {
  const age = now.getTime() - time
  if (!(age <= maxAge && age >= -maxAhead)) throw refused('the signature is too old, or from the future')
}

const json = 'application/json'
const form = 'application/x-www-form-urlencoded'
/** Other headers that AWS libraries sign. None of them changes the meaning of the request. */
const mayBeSigned = [
  'accept',
  'amz-sdk-invocation-id',
  'amz-sdk-request',
  'content-length',
  'content-type',
  'user-agent',
  'x-amz-content-sha256',
  'x-amz-security-token',
  'x-amz-user-agent',
]

/** Decodes base64 in the standard or URL alphabet, with or without padding. Throws for an encoding that is not canonical. */
function decode(text: string): string {
  if (text.length > maxLength) throw refused('too long')
  const bytes = Buffer.from(text, 'base64')
  const standard = bytes.toString('base64')
  const url = standard.replaceAll('+', '-').replaceAll('/', '_')
  const spellings = [standard, url].flatMap((one) => [one, one.split('=', 1)[0]!])
  if (text === '' || !spellings.includes(text)) throw refused('neither a compact JWT nor base64')
  const decoded = bytes.toString('latin1')
  if (!/^[\t\r\n\x20-\x7e]*$/.test(decoded)) throw refused('not an ASCII request')
  return decoded
}

function parse(text: string): { line: string; headers: Map<string, string>; body: string } {
  const end = /\r?\n\r?\n/.exec(text)
  if (!end) throw refused('not an HTTP request')
  const [head, body] = [text.slice(0, end.index), text.slice(end.index + end[0].length)]
  if (body.length > maxBody) throw refused('not an HTTP request')
  const [line = '', ...fields] = head.split(/\r?\n/)
  if (fields.length > maxHeaders) throw refused('too many headers')
  const headers = new Map<string, string>()
  for (const field of fields) {
    const [, name, text = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e]*)$/.exec(field) ?? []
    const value = text.trim()
    if (name === undefined || value.includes('\t')) throw refused('invalid header')
    if (headers.has(name.toLowerCase())) throw refused('a header occurs twice')
    headers.set(name.toLowerCase(), value)
  }
  return { line, headers, body }
}

/** The target, if the request asks who its caller is and nothing else, in the query or in the body. */
function targetOf(line: string, headers: Map<string, string>, body: string): string {
  const [, target, query = ''] = /^POST (\/(?:\?([^ #]*))?) HTTP\/1\.[01]$/.exec(line) ?? []
  if (target === undefined) throw refused('not a POST to /')
  const inBody = query === ''
  if (inBody ? !headers.get('content-type')?.toLowerCase().startsWith(form) : body !== '')
    throw refused('unexpected body')
  if (headers.has('transfer-encoding')) throw refused('unexpected body')
  if (Number(headers.get('content-length') ?? body.length) !== body.length) throw refused('wrong content-length')
  const accept = headers.get('accept')
  if (accept !== undefined && accept !== json) throw refused('accept is not application/json')
  const asked = [...new URLSearchParams(inBody ? body : query)].map(([name, value]) => `${name}=${value}`)
  if (asked.toSorted().join('&') !== 'Action=GetCallerIdentity&Version=2011-06-15')
    throw refused('the action is not GetCallerIdentity')
  return target
}

function readAuthorization(authorization = '') {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=[A-Za-z0-9_]{8,128}\/(\d{8})\/([a-z0-9-]{1,32})\/sts\/aws4_request, *SignedHeaders=([a-z0-9;-]{1,512}), *Signature=[0-9a-f]{64}$/
  const [, scopeDate, region, names] = pattern.exec(authorization) ?? []
  if (!scopeDate || !region || !names) throw refused('invalid authorization header')
  const signed = names.split(';')
  if (new Set(signed).size !== signed.length) throw refused('a header is listed twice as signed')
  return { authorization, scopeDate, region, signed }
}

function timeOf(date: string): number {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? []
  const [year, month, day, hour, minute, second] = parts
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Number.isNaN(time)) throw refused('invalid x-amz-date')
  return time
}
