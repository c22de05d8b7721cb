// OAuth clients of this server. They have no secret, so any program can use their IDs. The person who approves a program decides
// whether it gets tokens.
import type { App } from '#app.ts'
import { isUid } from '#lib/uid.ts'
import { toolsPath } from './discovery.ts'
import { OAuthRefusal } from './oauth-words.ts'
import { checkRequest, type RequestedToken } from './people/tokens.ts'

/** Client ID of all programs. A server with a compatibility profile also accepts a client ID with the vendor's name. */
export const ownClient = 'pinfold'

/**
 * Throws for an unknown client ID. Client IDs are fixed, since they are the audience of ID tokens. Otherwise a program could
 * request an ID token whose audience is another service that trusts this server.
 */
export function requireClient({ vendor }: Pick<App, 'vendor'>, id: string | null): string {
  if (id === null || id === '') throw new OAuthRefusal('invalid_request', 'client_id is required')
  if (id !== ownClient && id !== vendor?.token) throw new OAuthRefusal('invalid_client', 'unknown client_id')
  return id
}

/** Audiences of the requested tokens, from the parameters `audience` and `resource` (RFC 8707). The default is the API. */
export function audiencesOf(issuer: string, form: URLSearchParams): string[] {
  // The MCP endpoint accepts tokens of the API, so its URL stands for the API.
  const resources = form.getAll('resource').map((one) => (one === issuer + toolsPath ? issuer : one))
  const audiences = [...form.getAll('audience'), ...resources]
  return audiences.length > 0 ? audiences : [issuer]
}

/** Values of `scope` that are not uids of groups. */
export const scopeWords = ['openid', 'profile', 'email', 'offline_access']

/**
 * Tokens that a program requests. `scope` selects whether it gets an ID token and a refresh token in addition to the access
 * token.
 */
export type ClientRequest = RequestedToken & { words: readonly string[] }

/** Reads which tokens a program requests, from an authorization, device authorization or refresh request. Throws OAuthRefusal or
 * INVALID_ARGUMENT for invalid values. */
export function readClientRequest(issuer: string, form: URLSearchParams): ClientRequest {
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
  checkRequest(issuer, wish)
  return wish
}

export function wantsRefresh({ words }: ClientRequest): boolean {
  return words.includes('offline_access')
}
