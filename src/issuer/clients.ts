// Programs that ask us for tokens in the words of OAuth. They keep no secret, so anybody can be one; what counts is the
// person who lets them in.
import type { App } from '#app.ts'
import { isUid } from '#lib/uid.ts'
import { toolsPath } from './discovery.ts'
import { OAuthRefusal } from './oauth-words.ts'
import { checkWish, type TokenWish } from './people/tokens.ts'

/** The one that everybody is; a server with a compatibility profile has one of the vendor's name too. */
export const ownClient = 'pinfold'

/**
 * Throws for another one: the client is the audience of ID tokens, and with a name of its own choice somebody could have us
 * sign one for a service that trusts us.
 */
export function requireClient({ vendor }: Pick<App, 'vendor'>, id: string | null): string {
  if (id === null || id === '') throw new OAuthRefusal('invalid_request', 'client_id is required')
  if (id !== ownClient && id !== vendor?.token) throw new OAuthRefusal('invalid_client', 'there is no such client')
  return id
}

/** What the tokens are for: `audience`, and `resource` of RFC 8707; the API unless said. */
export function audiencesOf(issuer: string, form: URLSearchParams): string[] {
  // The tools take the tokens of the API, which they are a part of.
  const resources = form.getAll('resource').map((one) => (one === issuer + toolsPath ? issuer : one))
  const audiences = [...form.getAll('audience'), ...resources]
  return audiences.length > 0 ? audiences : [issuer]
}

/** Words of `scope` beside the uids of groups. */
export const scopeWords = ['openid', 'profile', 'email', 'offline_access']

/** What a program gets: an access token, and as `scope` has it an ID token and a refresh token. */
export type ClientWish = TokenWish & { words: readonly string[] }

/** Throws for what cannot be asked for. */
export function readWish(issuer: string, form: URLSearchParams): ClientWish {
  const scope = (form.get('scope') ?? '').split(' ').filter((one) => one !== '')
  const wish = {
    audiences: audiencesOf(issuer, form),
    scopes: scope.filter((one) => !scopeWords.includes(one)),
    capabilities: form.getAll('cap'),
    words: scopeWords.filter((one) => scope.includes(one)),
  }
  if (!wish.scopes.every(isUid)) {
    throw new OAuthRefusal('invalid_scope', `scope must list ${scopeWords.join(', ')} and uids of groups`)
  }
  checkWish(issuer, wish)
  return wish
}

export function wantsRefresh({ words }: ClientWish): boolean {
  return words.includes('offline_access')
}
