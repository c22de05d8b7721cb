// Use of push tokens at the registry, and their end with the provider or session of their maker.
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

/** Valid push token of this user name, if the secret is correct. Records the use. */
export async function openPushToken(
  app: App,
  { userName, secret, source }: { userName: string; secret: string; source: string },
): Promise<PushToken | undefined> {
  // A text with a wrong checksum is a typing error or a foreign secret.
  if (!isPushSecret(secret)) return undefined
  const token = await store.findByUserName(app.db, userName)
  const given = Buffer.from(hashOf(secret))
  const same = timingSafeEqual(given, Buffer.from(token?.secretHash ?? hashOf('')))
  if (!token || !same || !isGood(token, app)) return undefined
  await noteUse(app, token, source)
  return token
}

/** Records the use, to about a minute. A failed write does not refuse the pull. */
async function noteUse(app: App, { uid, lastUsedTime }: PushToken, source: string): Promise<void> {
  const now = app.clock()
  if (now.getTime() - (Date.parse(lastUsedTime) || 0) < noteUseSeconds * 1000) return
  const note = (tx: Tx) => store.notePushTokenUse(tx, uid, now.toISOString(), source)
  await app.db.tx(note, { durability: 'later' }).catch((error: unknown) => {
    app.failures.repeated('last use of a push token could not be written', error)
  })
}

/** Deletes a token and emits the event. Returns false if it was already gone. */
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

/** Most tokens read at once. */
const perRead = 200

/** Revokes the tokens created through a provider; if `externalId` is set, only those of one person. */
export async function endPushTokensOfProvider(
  tx: Tx,
  work: EventWork,
  provider: string,
  externalId?: string,
): Promise<void> {
  await removeAll(tx, work, 'provider', () => store.pushTokensOfProvider(tx, provider, externalId, perRead))
}

/** Revokes the tokens created in a session that somebody else may have used. */
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
