// Only the needed parts of jose are imported, since commands load this file.
import type { CryptoKey, JWK } from 'jose'
import { importJWK } from 'jose/key/import'
import type { Db } from '#db/sql.ts'
import {
  currentSigningKeys,
  type NewKeyPair,
  type Rotation,
  rotateSigningKeys,
  type SigningKey,
} from '#domains/iam/signing-keys/signing-keys.service.ts'
import type { SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { algorithmOf, type SigningAlgorithm } from '#lib/crypto/signing-algorithms.ts'

type Key = {
  kid: string
  alg: SigningAlgorithm
  activeTime: number
  publicKey: CryptoKey
  privateKey: CryptoKey
  jwk: JWK
}

/** Signing key, with the key ID and algorithm for the header of a token. */
export type Signer = { kid: string; alg: SigningAlgorithm; key: CryptoKey }

/** Keys of this server: to sign tokens, to verify tokens, and to publish. */
export type Keyring = {
  /**
   * Newest active signing key of the algorithm. Without such a key, the newest one of any algorithm. The default is the first
   * algorithm in the settings.
   */
  signer(algorithm?: SigningAlgorithm): Signer
  /** Verification key. Undefined if the server does not have this key (any more), or if its algorithm is another one. */
  verifier(kid: string, algorithm: string): CryptoKey | undefined
  /** Like `verifier`, but reads the database for an unknown key, since another server may have just created it. */
  findVerifier(kid: string, algorithm: string): Promise<CryptoKey | undefined>
  /** Algorithms of the published keys. */
  algorithms(): SigningAlgorithm[]
  jwks(): { keys: JWK[] }
  /** Number that changes when a key is added or removed. Then all tokens must be verified again. */
  epoch(): number
  /** Reads the keys from the database. Returns the number of changes. Must be called regularly. */
  refresh(): Promise<number>
  /** Creates and removes keys by their age, for all servers. Returns the number of changes. `tx` runs the transaction. */
  rotate(tx: Db['tx']): Promise<number>
}

const leastRefreshMs = 200

/** Opens the keyring. `now` returns milliseconds since 1970. */
export async function openKeyring(
  db: Db,
  cipher: SecretCipher,
  now: () => number,
  rotation: Rotation,
): Promise<Keyring> {
  let keys = new Map<string, Key>()
  let epoch = 0

  const refresh = async (): Promise<number> => {
    const stored = await currentSigningKeys(db, cipher)
    const added = stored.filter(({ kid }) => !keys.has(kid)).length
    const dropped = keys.size - (stored.length - added)
    if (added + dropped === 0) return 0
    keys = new Map(await Promise.all(stored.map(async (key) => [key.kid, await load(key)] as const)))
    epoch++
    return added + dropped
  }
  const rotate = async (tx: Db['tx']): Promise<number> => {
    const changed = await rotateSigningKeys({ db, tx }, cipher, now(), rotation, newKeyPair)
    await refresh()
    return changed
  }
  await refresh()
  // The first process that opens the database creates the first key.
  if (keys.size === 0) await rotate((work, options) => db.tx(work, options))

  // The database is read at most once in this time, however many tokens have unknown keys.
  let asked = Number.NEGATIVE_INFINITY
  let asking: Promise<unknown> | undefined
  const askAgain = async (): Promise<void> => {
    if (!asking && performance.now() - asked < leastRefreshMs) return
    asking ??= refresh()
      // If the database is unavailable, the key stays unknown.
      .catch(() => {})
      .finally(() => {
        asked = performance.now()
        asking = undefined
      })
    await asking
  }
  const verifier = (kid: string, algorithm: string): CryptoKey | undefined => {
    const key = keys.get(kid)
    return key?.alg === algorithm ? key.publicKey : undefined
  }

  return {
    signer(algorithm = rotation.algorithms[0]) {
      const active = [...keys.values()].filter((key) => key.activeTime <= now())
      const newest = active.findLast((key) => key.alg === algorithm) ?? active.at(-1) ?? [...keys.values()][0]
      if (!newest) throw new Error('the issuer has no signing key')
      const { kid, alg, privateKey: key } = newest
      return { kid, alg, key }
    },
    verifier,
    async findVerifier(kid, algorithm) {
      if (!keys.has(kid)) await askAgain()
      return verifier(kid, algorithm)
    },
    algorithms: () => [...new Set([...keys.values()].map(({ alg }) => alg))],
    jwks: () => ({ keys: [...keys.values()].map((key) => key.jwk) }),
    epoch: () => epoch,
    refresh,
    rotate,
  }
}

const newKeyPair: NewKeyPair = async (algorithm) => {
  const { calculateJwkThumbprint, exportJWK, generateKeyPair } = await import('jose')
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true })
  const publicJwk = await exportJWK(publicKey)
  return {
    kid: await calculateJwkThumbprint(publicJwk),
    publicJwk: publicJwk,
    privateJwk: await exportJWK(privateKey),
  }
}

async function load({ kid, publicJwk, privateJwk, activeTime }: SigningKey): Promise<Key> {
  const alg = algorithmOf(publicJwk)
  return {
    kid,
    alg,
    activeTime: Date.parse(activeTime),
    publicKey: (await importJWK(publicJwk, alg)) as CryptoKey,
    privateKey: (await importJWK(privateJwk, alg)) as CryptoKey,
    jwk: { ...publicJwk, kid, use: 'sig', alg },
  }
}
