// Verification of an event, with the same checks that a webhook receiver makes.
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import { digestOf } from '#lib/digest.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { isAtOrBelow, isUid, top } from '#lib/uid.ts'
import { failure } from '../framework/cli-error.ts'
import type { StreamedEvent } from './event-stream.ts'

/** Throws unless a published key of the server signed the event, for this group and with this body. */
type VerifyEvent = (event: StreamedEvent) => Promise<void>

const prefix = 'webhook:'

/** `group` is the group of the stream. If it is empty, the token must name the group of the event or a group above it. */
export function createEventVerifier(api: string, group: string): VerifyEvent {
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', api))
  return async ({ id, attributes, data, token }) => {
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: api,
        audience: 'customer',
        algorithms: [...signingAlgorithms],
        requiredClaims: ['sub', 'exp'],
      })
      const { sub = '', webhook } = payload
      const tokenGroup = sub.startsWith(prefix) ? sub.slice(prefix.length) : ''
      const meant = group === '' ? tokenGroup === top || isUid(tokenGroup) : tokenGroup === group
      if (!meant || !isAtOrBelow(attributes.group ?? '', tokenGroup)) throw new Error('it is not for this group')
      const digest = digestOf('sha256', Buffer.from(data))
      if ((webhook as { digest?: unknown } | undefined)?.digest !== digest) throw new Error('its body was changed')
      if (attributes.id !== id) throw new Error('its id was changed')
    } catch (error) {
      const reason = plain((error as Error).message)
      throw failure(`the event ${plain(id)} is not genuine, according to its signature by ${api}: ${reason}`, error)
    }
  }
}
