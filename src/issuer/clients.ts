// OAuth clients of the server. They have no secret, so anyone can be one; the person who approves them decides.
import type { App } from '#app.ts'
import { isUid } from '#lib/uid.ts'
import { toolsPath } from './discovery.ts'
import { OAuthRefusal } from './oauth-words.ts'
import { checkWish, type TokenWish } from './people/tokens.ts'

/** The common client ID. A server with a compatibility profile also has one with the vendor's name. */
export const ownClient = 'pinfold'

/**
 * Throws for another client ID. It is the audience of ID tokens, so a free choice would let clients get a token signed for a
 * service that trusts this server.
 */
export function requireClient({ vendor }: Pick<App, 'vendor'>, id: string | null): string {
  if (id === null || id === '') throw new OAuthRefusal('invalid_request', 'client_id is required')
  if (id !== ownClient && id !== vendor?.token) throw new OAuthRefusal('invalid_client', 'unknown client_id')
  return id
}

/** Audiences of the requested tokens: `audience`, and `resource` of RFC 8707. The API by default. */
export function audiencesOf(issuer: string, form: URLSearchParams): string[] {
  // MCP tools are part of the API and accept its tokens.
  const resources = form.getAll('resource').map((one) => (one === issuer + toolsPath ? issuer : one))
  const audiences = [...form.getAll('audience'), ...resources]
  return audiences.length > 0 ? audiences : [issuer]
}

/** Values of `scope` besides the uids of groups. */
export const scopeWords = ['openid', 'profile', 'email', 'offline_access']

/** Tokens that a program requests: an access token, and an ID token and refresh token by `scope`. */
export type ClientWish = TokenWish & { words: readonly string[] }

/** Reads a request for tokens. Throws OAuthRefusal or INVALID_ARGUMENT for invalid values. */
export function readWish(issuer: string, form: URLSearchParams): ClientWish {
  const scope = (form.get('scope') ?? '').split(' ').filter((one) => one !== '')
  const wish = {
    audiences: audiencesOf(issuer, form),
    scopes: scope.filter((one) => !scopeWords.includes(one)),
    capabilities: form.getAll('cap'),
    words: scopeWords.filter((one) => scope.includes(one)),
  }
  if (!wish.scopes.every(isUid)) {
    throw new OAuthRefusal('invalid_scope', `scope can have only ${scopeWords.join(', ')} and uids of groups`)
  }
  checkWish(issuer, wish)
  return wish
}

export function wantsRefresh({ words }: ClientWish): boolean {
  return words.includes('offline_access')
}
