// Fuzz targets for input of the sign-in from programs and users: codes and redirect URLs.
import { answerTo, readCodeRequest, readOAuth, readRedirect } from '#api/ui/oauth-request.ts'
import { ownPath } from '#api/ui/visit.ts'
import { readUserCode } from '#domains/iam/sessions/device-codes.service.ts'
import { readHeadlessCode } from '#domains/iam/sessions/headless.service.ts'
import { oneOf, type Random } from '../support/random.ts'
import { mutate } from './mutate.ts'

const issuer = 'https://registry.example.com'
const challenge = 'a'.repeat(43)
const requests = [
  `response_type=code&client_id=pinfold&redirect_uri=http%3A%2F%2F127.0.0.1%3A80%2Fc&code_challenge=${challenge}&code_challenge_method=S256&scope=openid+offline_access&state=s&nonce=n`,
  `response_type=code&client_id=pinfold&redirect_uri=http://localhost/&max_age=0&prompt=login&resource=${issuer}/mcp&cap=repo.list`,
  'exit=redirect&redirect=http%3A%2F%2F%5B%3A%3A1%5D%3A9%2F%3Ftoken%3Dtrue&audience=registry.example.com&scope=a%2520b&create_refresh_token=true',
]
const redirects = [
  'http://localhost:8080/callback?token=true',
  'http://127.0.0.1/',
  'http://[::1]:1/a#b',
  'http://a@localhost/',
]
const paths = [
  '/ui/device/confirm',
  '/ui/g/acme/~/people?page=2',
  '//evil.example',
  '/ui/../v2/',
  '/ui/signin?return=/ui/',
]
const loopback = ['localhost', '127.0.0.1', '[::1]']

function requireLoopback(to: string): void {
  const { protocol, hostname } = new URL(to)
  if (protocol !== 'http:' || !loopback.includes(hostname)) throw new Error(`somebody would be sent to ${to}`)
}

export const programTargets: Record<string, (random: Random) => unknown> = {
  'sign-in request'(random) {
    const query = new URLSearchParams(mutate(random, oneOf(random, requests)))
    const asked = random.below(2)
      ? readCodeRequest({ vendor: undefined } as never, issuer, query)
      : readOAuth(issuer, query)
    requireLoopback(asked.to)
    requireLoopback(answerTo(asked.to, { code: 'c', state: query.get('state') ?? undefined, iss: issuer }))
  },
  redirect(random) {
    const url = readRedirect(mutate(random, oneOf(random, redirects)))
    if (url) requireLoopback(url.href)
  },
  'path to come back to'(random) {
    const path = ownPath(mutate(random, oneOf(random, paths)))
    const url = new URL(path, issuer)
    if (url.origin !== issuer || !url.pathname.startsWith('/ui/')) throw new Error(`somebody would be sent to ${path}`)
  },
  'user code'(random) {
    const code = readUserCode(mutate(random, oneOf(random, ['BCDF-GHJK', 'bcdfghjk', ' QRST VWXZ '])))
    if (code !== undefined && !/^[BCDFGHJKLMNPQRSTVWXZ]{8}$/.test(code)) throw new Error(`${code} passed for a code`)
  },
  'headless code'(random) {
    readHeadlessCode(mutate(random, '3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08'), 'code')
  },
}
