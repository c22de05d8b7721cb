import { isRepoPath } from '#lib/oci-names.ts'
import { OciError } from './errors.ts'
import type { Visit } from './visit.ts'

/** Which actions a client should ask for when it wants to do one. */
const wanted: Record<string, string> = { pull: 'pull', push: 'pull,push', delete: 'pull,push,delete' }

/** What a client asks the token endpoint for to list the repositories. */
export const catalogScope = 'registry:catalog:*'

/**
 * 401 with where to get a token that would do (RFC 6750; the scopes are those of the token authentication that clients of
 * registries follow). A mount reads another repository too.
 * `further` are scopes that the client should ask for as well.
 */
export function challenge(
  visit: Visit,
  action?: string,
  error?: 'insufficient_scope' | 'invalid_token',
  further: readonly string[] = [],
): OciError {
  const { registry, name, origin } = visit
  // Where the host stands for a part of the path, the token endpoint adds it again.
  const asked = visit.prefix === '' ? name : visit.written
  const from = visit.query.get('from') ?? ''
  const mounts = action === 'push' && visit.query.has('mount') && isRepoPath(from)
  const named = action !== undefined && isRepoPath(name)
  const scopes = [
    ...(named ? [`repository:${asked}:${wanted[action]}`] : []),
    ...(named && mounts ? [`repository:${from}:pull`] : []),
    ...further,
  ]
  // Clients name repositories to the token endpoint as they name them to the registry, so it is asked under the same host.
  // The service is called the same under each.
  const parts = [`realm="${origin}/token"`, `service="${registry.host}"`]
  if (scopes.length > 0) parts.push(`scope="${[...new Set(scopes)].join(' ')}"`)
  if (error !== undefined) parts.push(`error="${error}"`)
  return new OciError('UNAUTHORIZED', 'authentication is required', {
    headers: { 'www-authenticate': `Bearer ${parts.join(',')}` },
  })
}
