// Headless sign-in. A program creates an X25519 key pair and prints a link with the public key. The user opens the link in a
// browser and signs in. The program then fetches a token that only its private key can decrypt.
import { createCipheriv, createPublicKey, diffieHellman, generateKeyPairSync, randomBytes } from 'node:crypto'
import type { App, Work } from '#app.ts'
import { hashOf } from '#lib/crypto/secret-hash.ts'
import { invalid, tooMany } from '#lib/errors.ts'
import * as store from './own-grants.store.ts'
import { headlessSeconds, maxHeadless, type Session } from './sessions.model.ts'
import { after, beginFrom } from './sessions.service.ts'

const keyBytes = 32

/**
 * Public key of the program, as text: 32 bytes in base64url without padding. Throws INVALID_ARGUMENT if the text is not an X25519
 * key.
 */
export function readHeadlessCode(text: string, field: string): string {
  const isCode = /^[A-Za-z0-9_-]{43}$/.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text
  if (!isCode || !agree(text)) throw invalid({ field, description: 'must be an X25519 public key in base64url' })
  return text
}

/**
 * Shared secret of an X25519 key agreement with the program, and the public key that the program needs for it. Undefined for an
 * unusable key.
 */
function agree(code: string): { publicKey: string; secret: Buffer } | undefined {
  try {
    const theirs = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: code }, format: 'jwk' })
    const { privateKey, publicKey } = generateKeyPairSync('x25519')
    const secret = diffieHellman({ privateKey, publicKey: theirs })
    if (secret.length !== keyBytes || secret.every((byte) => byte === 0)) return undefined
    return { publicKey: publicKey.export({ format: 'jwk' }).x!, secret }
  } catch {
    return undefined
  }
}

/**
 * Starts a session of the program for the person who is signed in with `from`. Encrypts the token from `sign` and stores it until
 * the program fetches it. Throws INVALID_ARGUMENT if the key was used before.
 */
export async function leaveForHeadless(
  work: Pick<Work, 'app' | 'cause'>,
  from: Session,
  code: string,
  sign: (session: Session) => Promise<string>,
): Promise<Session> {
  const { app, cause } = work
  const codeHash = hashOf(code)
  const expireTime = after(cause.now, headlessSeconds)
  const session = await app.db.tx(async (tx) => {
    const { ofIdentity, all } = await store.countHeadless(tx, from.identityUid, cause.now)
    if (ofIdentity >= maxHeadless.ofIdentity || all >= maxHeadless.all) {
      throw tooMany('too many headless sign-ins are waiting; retry later', 60)
    }
    if (!(await store.reserveHeadless(tx, codeHash, from.identityUid, expireTime))) {
      throw invalid({ field: 'code', description: 'was used before; start the sign-in again' })
    }
    return beginFrom(tx, work, from, { refresh: false, bound: { scopes: [], capabilities: [] } })
  })
  const { publicKey, secret } = agree(code)!
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', secret, nonce)
  const token = await sign(session)
  const encrypted = Buffer.concat([nonce, cipher.update(token), cipher.final(), cipher.getAuthTag()])
  await app.db.tx((tx) => store.fillHeadless(tx, codeHash, { publicKey, encrypted }))
  return session
}

/**
 * Encrypted token for the program with this key. The token is returned only once. Undefined if there is none or it has expired.
 */
export async function takeForHeadless(
  app: App,
  code: string,
): Promise<Pick<store.HeadlessSignIn, 'publicKey' | 'encrypted'> | undefined> {
  const taken = await app.db.tx((tx) => store.takeHeadless(tx, hashOf(code)))
  return taken && taken.expireTime > app.clock().toISOString() ? taken : undefined
}
