import { isRepoPath } from '#lib/oci-names.ts'
import { OciError } from './errors.ts'
import type { Visit } from './visit.ts'

/** Actions that a challenge names, by the action that the request needs. Clients also read what they push or delete. */
const wanted: Record<string, string> = { pull: 'pull', push: 'pull,push', delete: 'pull,push,delete' }

/** Scope for listing the repositories. */
export const catalogScope = 'registry:catalog:*'

function messageOf(origin: string, error: 'insufficient_scope' | 'invalid_token' | undefined): string {
  if (error === 'insufficient_scope')
    return 'the token does not cover this request; get a token with the scope of the challenge'
  return `authentication is required: docker login ${origin.slice(origin.indexOf('://') + 3)}`
}

/**
 * Creates a 401 error with the URL of the token endpoint and the scopes to request (RFC 6750, and the Docker token
 * specification). For a mount, the scopes include a pull from the other repository. `further` are additional scopes.
 */
export function challenge(
  visit: Visit,
  action?: string,
  error?: 'insufficient_scope' | 'invalid_token',
  further: readonly string[] = [],
): OciError {
  const { registry, name, origin } = visit
  // A configured host stands for a path prefix. The token endpoint adds the prefix, so the scope must not contain it.
  const asked = visit.prefix === '' ? name : visit.written
  const from = visit.query.get('from') ?? ''
  const mounts = action === 'push' && visit.query.has('mount') && isRepoPath(from)
  const named = action !== undefined && isRepoPath(name)
  const scopes = [
    ...(named ? [`repository:${asked}:${wanted[action]}`] : []),
    ...(named && mounts ? [`repository:${from}:pull`] : []),
    ...further,
  ]
  // The realm has the host of the request, so the token endpoint adds the same path prefix. `service` is always the main host.
  const parts = [`realm="${origin}/token"`, `service="${registry.host}"`]
  if (scopes.length > 0) parts.push(`scope="${[...new Set(scopes)].join(' ')}"`)
  if (error !== undefined) parts.push(`error="${error}"`)
  return new OciError('UNAUTHORIZED', messageOf(origin, error), {
    headers: { 'www-authenticate': `Bearer ${parts.join(',')}` },
  })
}
