// Refresh tokens. A token is base64 of `{exp, fam, tok}`. All refresh tokens of a session have the same secret `fam`, and `tok`
// changes with each use. The next `tok` is computed from the previous one and a stored key. So two simultaneous uses of a token
// return the same next token.
import { createHmac, randomBytes } from 'node:crypto'
import type { App, Work } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import { unauthenticated } from '#lib/errors.ts'
import * as store from './own-grants.store.ts'
import { predecessorSeconds, type Session } from './sessions.model.ts'
import { after, end, findLiveSession, newSecret, noteUse } from './sessions.service.ts'

const purpose = 'refresh-token-key'

export type RefreshToken = { text: string; expireTime: string }

/** Creates the first refresh token of a session. */
export async function issueRefreshToken(app: App, session: Session): Promise<RefreshToken> {
  const [family, token] = [newSecret(), newSecret()]
  await app.db.tx((tx) =>
    store.insertFamily(tx, {
      sessionUid: session.uid,
      familyHash: hashOf(family),
      currentHash: hashOf(token),
      previousHash: '',
      rotatedTime: session.createTime,
      sealedKey: app.cipher.encrypt(purpose, randomBytes(32)),
    }),
  )
  return write(session, family, token)
}

function write({ endTime }: Session, fam: string, tok: string): RefreshToken {
  const exp = Math.floor(Date.parse(endTime) / 1000)
  return { text: Buffer.from(JSON.stringify({ exp, fam, tok })).toString('base64'), expireTime: endTime }
}

const maxLength = 1024

function read(text: string): { family: string; token: string } | undefined {
  if (text.length > maxLength || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  try {
    const { fam, tok } = JSON.parse(Buffer.from(text, 'base64').toString()) as Record<string, unknown>
    return typeof fam === 'string' && typeof tok === 'string' ? { family: fam, token: tok } : undefined
  } catch {
    return undefined
  }
}

/**
 * Exchanges a refresh token for the next one. First calls `prepare`; if it throws, the token stays valid. Throws UNAUTHENTICATED
 * for an invalid token. If the token was used before, ends the session. The previous token is accepted for a few seconds after
 * its use.
 */
export async function useRefreshToken<T>(
  work: Pick<Work, 'app' | 'cause' | 'log'>,
  text: string,
  prepare: (session: Session) => Promise<T>,
): Promise<{ next: RefreshToken; prepared: T }> {
  const { app } = work
  const shown = read(text)
  const family = shown && (await store.findFamily(app.db, hashOf(shown.family)))
  const session = family && (await findLiveSession(app, family.sessionUid))
  const key = family && app.cipher.decrypt(purpose, family.sealedKey)
  if (!shown || !session || !key) throw refused()
  const prepared = await prepare(session)
  const token = createHmac('sha256', key).update(shown.token).digest('base64url')
  const isGood = await app.db.tx((tx) => rotate(tx, work.cause.now, session, { shown, next: token }), {
    isolation: 'rowLocks',
  })
  if (!isGood) {
    await app.db.tx(async (tx) => {
      await end(tx, work, session, 'reused')
      for (const hook of app.hooks.sessionEnded) await hook(tx, work.cause, session.uid)
    })
    work.log.warn('refresh token used again', { session: session.uid })
    throw refused()
  }
  const used = await noteUse(app, session, 'refreshed')
  return { next: write(used, shown.family, token), prepared }
}

/** Replaces the current token. Returns false if the sent token is not the current one, nor a previous one that was just used. */
async function rotate(
  tx: Tx,
  now: string,
  session: Session,
  { shown, next }: { shown: { family: string; token: string }; next: string },
): Promise<boolean> {
  const hash = hashOf(shown.token)
  if (await store.rotate(tx, { sessionUid: session.uid, currentHash: hash }, { hash: hashOf(next), now })) return true
  const family = await store.findFamily(tx, hashOf(shown.family))
  const isPredecessor = family?.previousHash === hash && family.currentHash === hashOf(next)
  return isPredecessor && now <= after(family.rotatedTime, predecessorSeconds)
}

function refused() {
  return unauthenticated('the refresh token is invalid, has expired or was used before; sign in again')
}
