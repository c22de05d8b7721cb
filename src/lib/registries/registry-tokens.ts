// Tokens for other registries (distribution specification, "Token Authentication"). A token is requested at the URL in the
// registry's challenge, with the credentials of an account there. Valid tokens are cached for at most five minutes.
import { Newest } from '../caches/newest.ts'
import { OutgoingError } from '../net/outgoing.ts'
import type { OutgoingStreams, StreamAnswer } from '../net/outgoing-streams.ts'
import { readChallenges } from './challenges.ts'

/** Credentials for a registry. `key` identifies the credentials, and differs for changed ones. */
export type Account = { key: string; username: string; password: string }

/** Options of a token request. If `secure`, the token service must use HTTPS. `pass` waits for the rate limit of its host. */
export type Way = { secure: boolean; signal: AbortSignal | undefined; pass(url: URL): Promise<void> }

export type RegistryTokens = {
  /** Cached Authorization header for this repository. Empty if no valid one is cached. */
  known(account: Account, path: string): string
  /** Authorization header for a challenge. `undefined` if this account cannot get one. */
  answer(account: Account, path: string, challenge: string, way: Way): Promise<string | undefined>
  forget(account: Account, path: string): void
}

const maxKept = 1000
const longestMs = 300_000
/** Lifetime of a token without `expires_in`, as in the specification. */
const usualSeconds = 60
const maxAnswerBytes = 128 * 1024
const timeoutMs = 10_000
const tokenPattern = /^[\x21-\x7e]{1,32768}$/

/** `monotonic` returns milliseconds. */
export function createRegistryTokens(outgoing: OutgoingStreams, monotonic: () => number): RegistryTokens {
  const kept = new Newest<string, { authorization: string; until: number }>(maxKept)
  const nameOf = ({ key }: Account, path: string) => `${key} ${path}`

  const ask = async (account: Account, path: string, realm: string, service: string, { signal, pass }: Way) => {
    const url = URL.parse(realm)
    if (!url) throw new OutgoingError('bad-url')
    if (service !== '') url.searchParams.set('service', service)
    // The scope of the challenge is ignored, since nothing but a pull of this repository is needed.
    url.searchParams.set('scope', `repository:${path}:pull`)
    const request = { method: 'GET', headers: {}, secret: secretOf(basicOf(account)) } as const
    const limits = { timeoutMs, maxBytes: maxAnswerBytes, pass, ...(signal && { signal }) }
    await pass(url)
    return outgoing.stream(url.href, request, readToken, limits)
  }

  return {
    known(account, path) {
      const entry = kept.get(nameOf(account, path))
      return entry && entry.until > monotonic() ? entry.authorization : ''
    },
    forget: (account, path) => void kept.delete(nameOf(account, path)),
    async answer(account, path, challenge, way) {
      const challenges = readChallenges(challenge)
      const basic = challenges.some(({ scheme }) => scheme === 'basic') ? basicOf(account) || undefined : undefined
      // If a registry offers both schemes, Bearer is used, since its token is valid only for this repository.
      const bearer = challenges.find(({ scheme }) => scheme === 'bearer')?.parameters
      const realm = bearer?.get('realm') ?? ''
      if (!bearer || realm.length > 2048) return basic
      // If the registry uses HTTPS, the token service must use it too. Otherwise others could read the password.
      if (way.secure && !realm.startsWith('https:')) throw new OutgoingError('insecure')
      const granted = await ask(account, path, realm, bearer.get('service') ?? '', way)
      if (!granted) return basic
      const authorization = `Bearer ${granted.token}`
      // Uses a token for 80 % of its lifetime, since clocks may differ and requests take time.
      const until = monotonic() + Math.min(granted.seconds * 800, longestMs)
      kept.set(nameOf(account, path), { authorization, until })
      return authorization
    },
  }
}

export const secretOf = (authorization: string): Record<string, string> =>
  authorization === '' ? {} : { authorization }

function basicOf({ username, password }: Account): string {
  if (username === '' && password === '') return ''
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

async function readToken({ status, chunks }: StreamAnswer): Promise<{ token: string; seconds: number } | undefined> {
  if (status === 401 || status === 403) return undefined
  if (status !== 200) throw new OutgoingError('status', undefined, status)
  const body = parse(Buffer.concat(await Array.fromAsync(chunks)))
  // The token may be in either of two members, and the other one may be empty.
  const token = [body.token, body.access_token].find((one) => one !== undefined && one !== null && one !== '')
  if (typeof token !== 'string' || !tokenPattern.test(token)) throw new OutgoingError('not-json')
  const { expires_in: seconds } = body
  return { token, seconds: typeof seconds === 'number' && seconds > 0 ? seconds : usualSeconds }
}

function parse(bytes: Buffer): Record<string, unknown> {
  try {
    const body = JSON.parse(bytes.toString('utf8')) as unknown
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  } catch {
    throw new OutgoingError('not-json')
  }
}
