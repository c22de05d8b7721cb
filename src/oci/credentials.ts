// Authentication of registry clients by the Authorization header.
import type { Caller } from '#caller.ts'
import { narrowingOf } from '#domains/iam/push-tokens/live-push-tokens.ts'
import { openPushToken } from '#domains/iam/push-tokens/push-token-use.service.ts'
import { bearerOf, callerOf } from '#edge/caller.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { type Verifier, WrongAudience } from '#issuer/access-token.ts'
import { proveIdentity } from '#issuer/exchange.ts'
import { isPushTokenUser } from '#lib/crypto/push-secret.ts'
import { AppError, unauthenticated } from '#lib/errors.ts'
import { countRefusals } from '#lib/net/limits.ts'
import { isUid } from '#lib/uid.ts'
import { OciError } from './errors.ts'
import type { Registry } from './visit.ts'

/** User name of `docker login` if the password is an access token. */
const tokenUser = '_token'

/** Parts of a request that authentication needs. */
type Shown = Pick<HttpArrival, 'authorization' | 'source' | 'countStranger'>

/** Verifies a bearer token. Throws UNAUTHORIZED for an invalid token, and DENIED for a token with another audience. */
export async function readBearer(
  { app }: Registry,
  verify: Verifier,
  shown: Pick<Shown, 'authorization' | 'source'>,
): Promise<Caller> {
  const token = bearerOf(shown.authorization)
  if (token === undefined)
    throw new OciError('UNAUTHORIZED', 'the Authorization header must be "Bearer TOKEN" or "Basic CREDENTIALS"')
  return explainFailure(
    countRefusals(app.limits, shown.source, async () => {
      const verified = await verify(token)
      return callerOf(app, verified.subject, verified)
    }),
  )
}

/**
 * Verifies basic authentication. The user name `_token` needs an access token as password. The user name of a push token needs
 * its secret. The uid of an identity needs a token of the issuer that the identity trusts.
 */
export async function readBasic(registry: Registry, verify: Verifier, shown: Shown): Promise<Caller> {
  const { authorization = '', source } = shown
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? []
  const text = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  const [user, password] = [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)]
  if (user === tokenUser) return readBearer(registry, verify, { authorization: `Bearer ${password}`, source })
  if (isPushTokenUser(user)) return readPushToken(registry, shown, user, password)
  if (!isUid(user))
    throw createUnauthorized(
      `the user name must be ${tokenUser}, the user name of a push token or the uid of an identity`,
    )
  const { app, url } = registry
  const now = app.clock()
  // The password is a token of another issuer. Its verification may need a request to the issuer, so this request counts as
  // unauthenticated.
  shown.countStranger()
  const { uid } = await explainFailure(proveIdentity({ app, issuer: url, source }, password, user, now))
  app.lastSeen.note(uid, now.toISOString())
  return explainFailure(callerOf(app, uid))
}

async function readPushToken({ app, host }: Registry, shown: Shown, user: string, password: string): Promise<Caller> {
  const { source } = shown
  shown.countStranger()
  return explainFailure(
    countRefusals(app.limits, source, async () => {
      const opened = await openPushToken(app, { userName: user, secret: password, source })
      if (!opened) throw unauthenticated('the push token is wrong, expired or deleted')
      const { uid, identityUid, createTime, expireTime } = opened
      // The limit of the identity is checked after the secret. Otherwise callers without the secret could use up the limit.
      app.limits.check('identity', uid)
      const [issuedAt, expiry] = [createTime, expireTime].map((time) => Math.floor(Date.parse(time) / 1000))
      return callerOf(app, identityUid, {
        subject: identityUid,
        audience: [host],
        issuedAt: issuedAt!,
        expiry: expiry!,
        narrowing: narrowingOf(opened),
        narrowed: true,
        pushToken: uid,
      })
    }),
  )
}

async function explainFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof WrongAudience) {
      throw new OciError(
        'DENIED',
        'the token has another audience; request a token whose audience is the host of the registry',
        {
          cause: error,
        },
      )
    }
    if (error instanceof AppError && (error.code === 'PERMISSION_DENIED' || error.code === 'UNAUTHENTICATED')) {
      throw createUnauthorized('the credentials are wrong, expired or revoked; sign in again', error)
    }
    throw error
  }
}

function createUnauthorized(message: string, cause?: unknown): OciError {
  return new OciError('UNAUTHORIZED', message, { cause })
}
