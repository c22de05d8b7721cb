// OAuth 2.0 Token Exchange (RFC 8693) over the same exchange as the STS, in the words of OAuth.
import type { Work } from '#app.ts'
import { isUid } from '#lib/uid.ts'
import { maxLifetime } from './access-token.ts'
import { audiencesOf } from './clients.ts'
import type { Issuing } from './exchange.ts'
import { OAuthRefusal } from './oauth-words.ts'
import { exchangeOf } from './people/provider-token.ts'

const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const subjectTypes = ['jwt', 'id_token', 'access_token'].map((type) => `urn:ietf:params:oauth:token-type:${type}`)

/**
 * `form` is the body. Beside the parameters of RFC 8693 it may name the `identity` to become, capabilities (`cap`) and the
 * `identity_provider` that the token is of; `scope` lists the uids of the groups that the token is for.
 */
export async function tokenExchange(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  issuing: Issuing,
  form: URLSearchParams,
): Promise<object> {
  if (!form.get('subject_token')) throw new OAuthRefusal('invalid_request', 'subject_token is required')
  if (!subjectTypes.includes(form.get('subject_token_type') ?? '')) {
    throw new OAuthRefusal('invalid_request', `subject_token_type must be one of ${subjectTypes.join(', ')}`)
  }
  if (form.has('actor_token')) throw new OAuthRefusal('invalid_request', 'actor_token is not supported')
  const requested = form.get('requested_token_type') ?? accessToken
  if (requested !== accessToken) {
    throw new OAuthRefusal('invalid_request', `requested_token_type must be ${accessToken}`)
  }
  const scopes = (form.get('scope') ?? '').split(' ').filter((scope) => scope !== '')
  if (!scopes.every(isUid)) throw new OAuthRefusal('invalid_scope', 'scope must list uids of groups')

  const { token } = await exchangeOf(work, issuing, form.get('identity_provider') ?? '', {
    credential: form.get('subject_token') ?? undefined,
    audiences: audiencesOf(issuing.issuer, form),
    scopes,
    capabilities: form.getAll('cap'),
    identity: form.get('identity') ?? '',
  })
  return { access_token: token, issued_token_type: accessToken, token_type: 'Bearer', expires_in: maxLifetime }
}
