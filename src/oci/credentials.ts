// Who a client of the registry is, from its Authorization header.
import type { Caller } from '#app.ts'
import { bearerOf, callerOf } from '#edge/caller.ts'
import { type Verifier, WrongAudience } from '#issuer/access-token.ts'
import { proveIdentity } from '#issuer/exchange.ts'
import { AppError } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { OciError } from './errors.ts'
import type { Registry } from './visit.ts'

/** The user name that goes with an access token. */
const tokenUser = '_token'

/** Throws UNAUTHORIZED for what is not a good token, DENIED for one that was issued for another audience. */
export async function readBearer(registry: Registry, verify: Verifier, header: string): Promise<Caller> {
  const token = bearerOf(header)
  if (token === undefined) throw new OciError('UNAUTHORIZED', 'the Authorization header must be "Bearer" and a token')
  const verified = await explained(verify(token))
  return callerOf(registry.app, verified.subject, verified)
}

/** `_token` with an access token, or the uid of an identity with a long-lived token that proves to be its own. */
export async function readBasic(registry: Registry, verify: Verifier, header: string): Promise<Caller> {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(header) ?? []
  const text = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  const [user, password] = [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)]
  if (user === tokenUser) return readBearer(registry, verify, `Bearer ${password}`)
  if (!isUid(user)) throw refused(`the user name must be ${tokenUser} or the uid of an identity`)
  const { app, url } = registry
  const now = app.clock()
  const { uid } = await explained(proveIdentity(app, url, password, user, now))
  app.lastSeen.note(uid, now.toISOString())
  return callerOf(app, uid)
}

async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof WrongAudience) {
      throw new OciError('DENIED', 'the token was issued for another audience; the registry has its own', {
        cause: error,
      })
    }
    if (error instanceof AppError && (error.code === 'PERMISSION_DENIED' || error.code === 'UNAUTHENTICATED')) {
      throw refused('the credentials are not accepted', error)
    }
    throw error
  }
}

function refused(message: string, cause?: unknown): OciError {
  return new OciError('UNAUTHORIZED', message, { cause })
}
