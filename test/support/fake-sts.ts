// Fake server for `pinfold auth`: token exchange, WhoAmI, one identity, and the token request of GitHub Actions.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Env } from './process.ts'

export type Seen = { method: string; path: string; query: URLSearchParams; bearer: string }
type Answer = { status?: number; body: unknown }

/** A compact token with the given claims. Its signature is invalid. */
export function looseToken(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'ES256', typ: 'JWT' })}.${part(claims)}.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg`
}

export function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds
}

/** A test can replace `answer`. If it returns `undefined`, the server gives its usual answer. */
export async function startFakeSts() {
  const seen: Seen[] = []
  const fake = {
    seen,
    url: '',
    /** Lifetime of issued tokens, in seconds. */
    lifetime: 3600,
    identity: {} as object,
    answer: (_: Seen): Answer | undefined => undefined,
    exchanges: () => seen.filter(({ path }) => path === '/sts/exchange'),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const usual = ({ path, query, bearer }: Seen): Answer => {
    if (path === '/sts/exchange') {
      const exp = secondsFromNow(fake.lifetime)
      const claims = { iss: fake.url, sub: query.get('identity'), aud: query.getAll('aud'), exp, jti: seen.length }
      return { body: { token: looseToken(claims), refreshToken: '', expiry: new Date(exp * 1000).toISOString() } }
    }
    if (path === '/auth/v1/ok') {
      const { iss, sub, aud, exp } = JSON.parse(Buffer.from(bearer.split('.')[1]!, 'base64url').toString())
      const capabilities = [
        { group: { id: 'a'.repeat(40), name: 'acme' }, role: { name: 'viewer' } },
        { group: { id: 'b'.repeat(40), name: '' }, capabilities: ['repo.list', 'tag.list'] },
      ]
      return {
        body: { issuer: iss, subject: sub, audience: aud, expiry: new Date(exp * 1000).toISOString(), capabilities },
      }
    }
    if (path.startsWith('/iam/v2/identities/')) return { body: fake.identity }
    if (path === '/github') return { body: { value: looseToken({ for: query.get('audience') }) } }
    return { status: 404, body: { code: 5, message: 'not found', details: [] } }
  }
  const server = createServer((req, res) => {
    const { pathname, searchParams } = new URL(req.url!, fake.url)
    const bearer = /^bearer (.*)$/i.exec(req.headers.authorization ?? '')?.[1] ?? ''
    const one = { method: req.method!, path: pathname, query: searchParams, bearer }
    seen.push(one)
    const { status = 200, body } = fake.answer(one) ?? usual(one)
    res.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
    res.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return fake
}

/** Environment with a separate home folder and without variables of CI platforms. Commands ignore an empty variable. */
export function makeHome() {
  const home = mkdtempSync(join(tmpdir(), 'pinfold-home-'))
  const env: Env = {
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_CACHE_HOME: join(home, 'cache'),
    ACTIONS_ID_TOKEN_REQUEST_URL: '',
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: '',
  }
  return {
    home,
    env,
    profile: join(home, 'config/pinfold/profile.json'),
    tokenFile: (audience: string) => join(home, 'cache/pinfold', audience.replaceAll('/', '-'), 'oidc-token'),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  }
}
