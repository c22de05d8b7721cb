// OAuth token endpoint. Selects the grant by the `grant_type` of the form.
import type { Work } from '#app.ts'
import { isUid } from '#lib/uid.ts'
import { maxLifetime } from './access-token.ts'
import { audiencesOf } from './clients.ts'
import type { Issuing } from './exchange.ts'
import { inOAuthWords, type OAuthAnswer, OAuthRefusal, refused } from './oauth-words.ts'
import { authorizeDevice, codeGrant, deviceGrant, refreshGrant } from './people/client-grants.ts'
import { exchangeOf } from './people/provider-token.ts'

type SignInWork = Pick<Work, 'app' | 'cause' | 'log'>
type Grant = (work: SignInWork, issuing: Issuing, form: URLSearchParams) => Promise<object>

const deviceGrantType = 'urn:ietf:params:oauth:grant-type:device_code'

/** Handlers by grant type. The device grant is missing if the settings turn it off. */
export function grantsOf(deviceSignIn: boolean): Record<string, Grant> {
  return {
    authorization_code: codeGrant,
    refresh_token: refreshGrant,
    ...(deviceSignIn && { [deviceGrantType]: deviceGrant }),
    'urn:ietf:params:oauth:grant-type:token-exchange': tokenExchange,
  }
}

/** Form parameters that may be repeated. All others may be sent only once. */
const lists = ['audience', 'resource', 'cap']

/** Response to a request at the token endpoint. */
export async function answerTokenRequest(
  work: SignInWork,
  issuing: Issuing,
  form: URLSearchParams,
): Promise<OAuthAnswer> {
  const twice = findRepeated(form)
  if (twice !== undefined) return refused(400, 'invalid_request', `${twice} must be given only once`)
  const grants = grantsOf(work.app.config.deviceSignIn)
  const name = form.get('grant_type') ?? ''
  if (!Object.hasOwn(grants, name)) {
    return refused(400, 'unsupported_grant_type', `grant_type must be one of ${Object.keys(grants).join(', ')}`)
  }
  return inOAuthWords(grants[name]!(work, issuing, form))
}

/** Response to a request at the device authorization endpoint. */
export async function answerDeviceRequest(
  work: SignInWork,
  issuing: Issuing,
  form: URLSearchParams,
): Promise<OAuthAnswer> {
  const twice = findRepeated(form)
  if (twice !== undefined) return refused(400, 'invalid_request', `${twice} must be given only once`)
  return inOAuthWords(authorizeDevice(work, issuing, form))
}

/**
 * First parameter that must not be repeated but is. Reads the form only once, since clients can send a form with very many
 * parameters.
 */
function findRepeated(form: URLSearchParams): string | undefined {
  const seen = new Set<string>()
  for (const name of form.keys()) {
    if (lists.includes(name)) continue
    if (seen.has(name)) return name.slice(0, 100)
    seen.add(name)
  }
  return undefined
}

const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const subjectTypes = ['jwt', 'id_token', 'access_token'].map((type) => `urn:ietf:params:oauth:token-type:${type}`)

/**
 * Exchanges a token (RFC 8693). `form` is the request body. Three parameters are our own: `identity` is the identity of the new
 * token, `cap` has capabilities, and `identity_provider` is the provider of the sent token. `scope` has uids of groups to which
 * the new token is narrowed.
 */
async function tokenExchange(
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
  if (!scopes.every(isUid)) throw new OAuthRefusal('invalid_scope', 'scope must be a list of uids of groups')

  const { token } = await exchangeOf(work, issuing, form.get('identity_provider') ?? '', {
    credential: form.get('subject_token') ?? undefined,
    audiences: audiencesOf(issuing.issuer, form),
    scopes,
    capabilities: form.getAll('cap'),
    identity: form.get('identity') ?? '',
  })
  return { access_token: token, issued_token_type: accessToken, token_type: 'Bearer', expires_in: maxLifetime }
}
