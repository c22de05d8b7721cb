// OAuth 2.0 Token Exchange (RFC 8693) over the same exchange as the STS, in the words of OAuth.
import { AppError } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { maxLifetime } from './access-token.ts'
import { toolsPath } from './discovery.ts'
import { exchange, type Issuing } from './exchange.ts'
import { ScopeOutOfReach } from './narrowing.ts'

const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const subjectTypes = ['jwt', 'id_token', 'access_token'].map((type) => `urn:ietf:params:oauth:token-type:${type}`)

export type OAuthAnswer = { status: number; body: object; retryAfter?: number | undefined }

/**
 * `form` is the body. Beside the parameters of RFC 8693 it may name the `identity` to become and capabilities (`cap`);
 * `scope` lists the uids of the groups that the token is for.
 */
export async function tokenExchange(issuing: Issuing, form: URLSearchParams): Promise<OAuthAnswer> {
  for (const name of [
    'grant_type',
    'subject_token',
    'subject_token_type',
    'requested_token_type',
    'identity',
    'scope',
  ]) {
    if (form.getAll(name).length > 1) return refused(400, 'invalid_request', `${name} is given more than once`)
  }
  if (form.get('grant_type') !== grantType) {
    return refused(400, 'unsupported_grant_type', `grant_type must be ${grantType}`)
  }
  if (!form.get('subject_token')) return refused(400, 'invalid_request', 'subject_token is required')
  if (!subjectTypes.includes(form.get('subject_token_type') ?? '')) {
    return refused(400, 'invalid_request', `subject_token_type must be one of ${subjectTypes.join(', ')}`)
  }
  if (form.has('actor_token')) return refused(400, 'invalid_request', 'actor_token is not supported')
  const requested = form.get('requested_token_type') ?? accessToken
  if (requested !== accessToken) return refused(400, 'invalid_request', `requested_token_type must be ${accessToken}`)
  const scopes = (form.get('scope') ?? '').split(' ').filter((scope) => scope !== '')
  if (!scopes.every(isUid)) return refused(400, 'invalid_scope', 'scope must list uids of groups')

  // The tools take the tokens of the API, which they are a part of.
  const resources = form.getAll('resource').map((one) => (one === issuing.issuer + toolsPath ? issuing.issuer : one))
  const audiences = [...form.getAll('audience'), ...resources]
  try {
    const { token } = await exchange(issuing, {
      credential: form.get('subject_token') ?? undefined,
      audiences: audiences.length > 0 ? audiences : [issuing.issuer],
      scopes,
      capabilities: form.getAll('cap'),
      identity: form.get('identity') ?? '',
    })
    const kind = { issued_token_type: accessToken, token_type: 'Bearer', expires_in: maxLifetime }
    return { status: 200, body: { access_token: token, ...kind } }
  } catch (error) {
    if (error instanceof AppError) return inOAuthWords(error)
    throw error
  }
}

function inOAuthWords(error: AppError): OAuthAnswer {
  const { code, message, details } = error
  const retry = details.find((detail) => detail.type === 'RetryInfo')?.retryDelaySeconds
  if (code === 'RESOURCE_EXHAUSTED') return { ...refused(429, 'slow_down', message), retryAfter: retry }
  if (code === 'INVALID_ARGUMENT') {
    const field = details.find((detail) => detail.type === 'BadRequest')?.fieldViolations[0]?.field
    return refused(400, field === 'aud' ? 'invalid_target' : 'invalid_request', message)
  }
  if (error instanceof ScopeOutOfReach) return refused(400, 'invalid_scope', message)
  if (code === 'UNAVAILABLE' || code === 'INTERNAL') throw error
  return refused(400, 'invalid_grant', message)
}

function refused(status: number, error: string, description: string): OAuthAnswer {
  return { status, body: { error, error_description: description } }
}
