// GET /token: exchanges credentials for a token that is valid for the repositories in `scope`, for at most five minutes.
// Parameters and response are those of the Docker token specification.

import { type RepositoryAccess, signAccessToken } from '#issuer/access-token.ts'
import { componentPattern, isRepoPath } from '#lib/oci-names.ts'
import { actionsAt, isPublic } from './access.ts'
import { catalogScope, challenge } from './challenge.ts'
import { OciError } from './errors.ts'
import { answerWith } from './respond.ts'
import { nameOrNone } from './views/names.ts'
import { pathOf, type Visit } from './visit.ts'

const lifetimeSeconds = 300
const maxScopes = 32

/**
 * Issues the token and writes `{ token, access_token, expires_in, issued_at }`. The token contains only those requested actions
 * that the caller is allowed to perform.
 */
export async function issueToken(visit: Visit): Promise<void> {
  const { registry, call } = visit
  if (visit.access)
    throw new OciError(
      'UNAUTHORIZED',
      'a token of this endpoint cannot be used to get another token; use your own credentials',
    )
  const { repositories: asked, catalog } = readScopes(visit.query.getAll('scope'))
  const visits: { scope: Scope; at: Visit }[] = []
  for (const scope of asked) {
    const named = await nameOrNone(visit.registry, visit.prefix, scope.name)
    if (named && isRepoPath(named.name)) visits.push({ scope, at: { ...visit, ...named } })
  }
  // Without a credential, a token can be requested only for pulls of public images.
  if (visit.anonymous && (catalog || visits.length === 0 || !visits.every(({ at }) => isPublic(at))))
    throw challenge(visit)
  // The token allows to list the catalog. Permissions decide later which repositories are listed.
  const access: RepositoryAccess[] = catalog ? [{ type: 'registry', name: 'catalog', actions: ['*'] }] : []
  for (const { scope, at } of visits) {
    const able = await actionsAt(at)
    const allowed = at.view ? able.filter((action) => action === 'pull') : able
    const actions = allowed.filter((action) => scope.actions.includes(action) || scope.actions.includes('*'))
    access.push({ name: pathOf(at), actions })
  }

  const now = registry.app.clock()
  const left = (call.caller.token?.expiry ?? Number.POSITIVE_INFINITY) - Math.floor(now.getTime() / 1000)
  const lifetime = Math.min(lifetimeSeconds, left)
  const token = await signAccessToken(registry.app.keyring, {
    issuer: registry.url,
    subject: call.caller.uid,
    audience: registry.host,
    now,
    lifetime,
    narrowing: call.caller.token?.narrowing,
    whole: call.caller.token?.narrowed === false,
    session: call.caller.session,
    granted: call.caller.token?.granted,
    access,
    pushToken: call.caller.token?.pushToken,
  })
  const body = { token, access_token: token, expires_in: lifetime, issued_at: now.toISOString() }
  answerWith(visit, JSON.stringify(body), { 'cache-control': 'no-store' })
}

type Scope = { name: string; actions: readonly string[] }

/**
 * Reads scopes `repository:<name>:<action>,…` and `registry:catalog:*`. One parameter may contain several scopes, separated by
 * spaces. Scopes in other forms are ignored.
 */
function readScopes(parameters: readonly string[]): { repositories: Scope[]; catalog: boolean } {
  const texts = parameters.flatMap((parameter) => parameter.split(' ')).filter((text) => text !== '')
  if (texts.length > maxScopes)
    throw new OciError('DENIED', `the request has ${texts.length} scopes, but at most ${maxScopes} are allowed`, {
      status: 400,
    })
  const repositories = texts.flatMap((text) => {
    const [, name, actions] = /^repository:([^:]+):([^:]*)$/.exec(text) ?? []
    if (name === undefined || !(isRepoPath(name) || componentPattern.test(name))) return []
    return [{ name, actions: actions!.split(',') }]
  })
  return { repositories, catalog: texts.includes(catalogScope) }
}
