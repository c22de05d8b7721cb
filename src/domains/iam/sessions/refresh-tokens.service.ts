// Refresh tokens: base64 of `{exp, fam, tok}`. `fam` names the family and proves possession of one of its tokens. `tok` changes
// with each use. The next token is derived from it and the key of the family, so simultaneous uses of a token get the same
// successor.
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
      sealedKey: app.sealer.seal(purpose, randomBytes(32)),
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
 * Exchanges a refresh token for its successor after `prepare` has succeeded. If `prepare` throws, the token stays valid. Throws
 * UNAUTHENTICATED for an invalid token. A used token ends the session, unless it is the direct predecessor and was used just now.
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
  const key = family && app.sealer.unseal(purpose, family.sealedKey)
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

/** Rotates the family. Returns false if the token is an old one. */
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
