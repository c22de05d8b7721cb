import { isRepoPath } from '#domains/registry/paths.service.ts'
import { OciError } from './errors.ts'
import type { Visit } from './visit.ts'

/** Which actions a client should ask for when it wants to do one. */
const wanted: Record<string, string> = { pull: 'pull', push: 'pull,push', delete: 'pull,push,delete' }

/**
 * 401 with where to get a token that would do (RFC 6750; the scopes are those of the token authentication that clients of
 * registries follow).
 */
export function challenge(visit: Visit, action?: string, error?: 'insufficient_scope' | 'invalid_token'): OciError {
  const { registry, name } = visit
  const parts = [`realm="${registry.url}/token"`, `service="${registry.host}"`]
  if (action !== undefined && isRepoPath(name)) parts.push(`scope="repository:${name}:${wanted[action]}"`)
  if (error !== undefined) parts.push(`error="${error}"`)
  return new OciError('UNAUTHORIZED', 'authentication is required', {
    headers: { 'www-authenticate': `Bearer ${parts.join(',')}` },
  })
}
