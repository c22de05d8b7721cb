// Use of push tokens at the registry, and revocation when the provider or session of their creator ends.
import { timingSafeEqual } from 'node:crypto'
import type { App, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { isPushSecret } from '#lib/crypto/push-secret.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import { isGood } from './live-push-tokens.ts'
import { noteUseSeconds, type PushToken, type RevokeReason, toRevokedPushTokenResource } from './push-tokens.model.ts'
import * as store from './push-tokens.store.ts'

type EventWork = Pick<Work, 'app' | 'cause'>

/** Valid push token with this user name. Undefined if there is none or the secret is wrong. Records the use. */
export async function openPushToken(
  app: App,
  { userName, secret, source }: { userName: string; secret: string; source: string },
): Promise<PushToken | undefined> {
  // The secret has a checksum. A wrong checksum is a typing error or another kind of secret, so no query is needed.
  if (!isPushSecret(secret)) return undefined
  const token = await store.findByUserName(app.db, userName)
  const given = Buffer.from(hashOf(secret))
  const same = timingSafeEqual(given, Buffer.from(token?.secretHash ?? hashOf('')))
  if (!token || !same || !isGood(token, app)) return undefined
  await noteUse(app, token, source)
  return token
}

/** Records the use of a push token, about once a minute. If the write fails, the pull continues. */
async function noteUse(app: App, { uid, lastUsedTime }: PushToken, source: string): Promise<void> {
  const now = app.clock()
  if (now.getTime() - (Date.parse(lastUsedTime) || 0) < noteUseSeconds * 1000) return
  const note = (tx: Tx) => store.notePushTokenUse(tx, uid, now.toISOString(), source)
  await app.db.tx(note, { durability: 'later' }).catch((error: unknown) => {
    app.failures.repeated('last use of a push token could not be written', error)
  })
}

/** Deletes a push token and emits an event. Returns false if the token was already deleted. */
export async function removePushToken(
  tx: Tx,
  work: EventWork,
  token: PushToken,
  reason: RevokeReason,
): Promise<boolean> {
  if (!(await store.deletePushToken(tx, token.uid))) return false
  const event = { subject: token.uid, group: token.group, resource: toRevokedPushTokenResource({ token, reason }) }
  await emit(tx, work, 'control.iam.push_token.revoked', event)
  return true
}

/** Most push tokens that one query reads. */
const perRead = 200

/** Revokes the push tokens that were created with a sign-in provider. If `externalId` is set, only those of this person. */
export async function endPushTokensOfProvider(
  tx: Tx,
  work: EventWork,
  provider: string,
  externalId?: string,
): Promise<void> {
  await removeAll(tx, work, 'provider', () => store.pushTokensOfProvider(tx, provider, externalId, perRead))
}

/** Revokes the push tokens that were created in a session, since somebody else may have created them. */
export async function endPushTokensOfSession(tx: Tx, work: EventWork, session: string): Promise<void> {
  await removeAll(tx, work, 'session', () => store.pushTokensOfSession(tx, session, perRead))
}

async function removeAll(
  tx: Tx,
  work: EventWork,
  reason: RevokeReason,
  read: () => Promise<PushToken[]>,
): Promise<void> {
  for (;;) {
    const tokens = await read()
    for (const token of tokens) await removePushToken(tx, work, token, reason)
    if (tokens.length < perRead) return
  }
}
