// GET /oauth: what a program asks for when it opens a browser.
import type { Asked } from '#issuer/people/sign-in.ts'
import { checkWish } from '#issuer/people/tokens.ts'
import { type FieldViolation, invalid } from '#lib/errors.ts'

const loopback = ['localhost', '127.0.0.1', '[::1]']
const maxRedirect = 2048

/**
 * A program on the same machine, at any port. Its own query may have `token`, `refresh_token` and `error`, which say what it
 * can take.
 */
export function readRedirect(text: string | null): URL | undefined {
  const url = text === null || text.length > maxRedirect ? null : URL.parse(text)
  const isOurs = url?.protocol === 'http:' && loopback.includes(url.hostname) && url.username + url.password === ''
  return isOurs && url.hash === '' ? url : undefined
}

/** What the program asks for. Throws INVALID_ARGUMENT, which nobody is redirected with: the redirect is a part of it. */
export function readOAuth(issuer: string, query: URLSearchParams): Asked {
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field, description })
  const exit = query.get('exit')
  if (exit !== null && exit !== 'redirect') say('exit', 'must be redirect')
  const redirect = readRedirect(query.get('redirect'))
  if (!redirect) say('redirect', 'must be an http URL of localhost, 127.0.0.1 or [::1]')
  for (const name of ['redirect', 'idp_id', 'connection', 'invite', 'identity']) {
    if (query.getAll(name).length > 1) say(name, 'is given more than once')
  }
  const [first, ...more] = problems
  if (first) throw invalid(first, ...more)

  const audiences = query.getAll('audience').flatMap((one) => one.split(',').filter((text) => text !== ''))
  const asked: Asked = {
    exit: 'redirect',
    to: redirect!.href,
    // They come escaped twice.
    scopes: query.getAll('scope').flatMap((one) =>
      unescaped(one)
        .split(/[ ,]/)
        .filter((text) => text !== ''),
    ),
    audiences: audiences.length > 0 ? audiences : [issuer],
    capabilities: [],
    identity: query.get('identity') ?? '',
    refresh: query.get('create_refresh_token') === 'true',
    register: query.get('skip_registration') !== 'true',
    fresh: query.get('max_age') === '0',
  }
  checkWish(issuer, asked, asked.identity)
  return asked
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Where a program learns what has come of it: with the members it can take, and without those that it cannot have. */
export function answerTo(redirect: string, answer: Record<string, string | undefined>): string {
  const url = new URL(redirect)
  for (const name of ['token', 'refresh_token', 'error', 'status_code']) url.searchParams.delete(name)
  for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}
