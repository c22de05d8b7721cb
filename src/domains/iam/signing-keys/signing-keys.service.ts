import type { JWK } from 'jose'
import type { Db } from '#db/sql.ts'
import type { SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { algorithmOf, type SigningAlgorithm, signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import * as store from './signing-keys.store.ts'

export type SigningKey = { kid: string; publicJwk: JWK; privateJwk: JWK; activeTime: string }

/** Creates a key pair. Must have no side effects, since the transaction may run more than once. */
export type NewKeyPair = (algorithm: SigningAlgorithm) => Promise<{ kid: string; publicJwk: JWK; privateJwk: JWK }>

const day = 24 * 60 * 60 * 1000
/** Milliseconds for which a new key is published before it signs tokens. By then, all verifiers have fetched the key. */
const publishedBefore = day
/**
 * The same time for the first key of an additional algorithm. By then, all servers have the key, and no verifier has an older key
 * set in its cache.
 */
const publishedBeforeFirst = 10 * 60 * 1000
/** Milliseconds for which an old key stays published after it has signed its last token. */
const publishedAfter = 2 * day

const purpose = 'signing-key'

/** All stored signing keys, decrypted. */
export async function currentSigningKeys(db: Db, cipher: SecretCipher): Promise<SigningKey[]> {
  return (await store.listSigningKeys(db)).map((row) => decryptKey(cipher, row))
}

export type Rotation = { days: number; algorithms: readonly SigningAlgorithm[] }

/** Creates new keys and deletes old ones by their age, in one transaction. Returns the number of changes. */
export async function rotateSigningKeys(
  { db, tx }: { db: Db; tx: Db['tx'] },
  cipher: SecretCipher,
  now: number,
  rotation: Rotation,
  newKeyPair: NewKeyPair,
): Promise<number> {
  const stored = await store.listSigningKeys(db)
  const due = missingAlgorithms(stored, now, rotation)
  if (due.length === 0 && expiredKeys(stored, now, rotation).length === 0) return 0
  const pairs = new Map<SigningAlgorithm, Awaited<ReturnType<NewKeyPair>>>()
  for (const algorithm of due) pairs.set(algorithm, await newKeyPair(algorithm))
  return tx(async (tx) => {
    const rows = await store.listSigningKeys(tx)
    const old = expiredKeys(rows, now, rotation)
    for (const row of old) await store.deleteSigningKey(tx, row.kid)
    let made = 0
    for (const algorithm of missingAlgorithms(rows, now, rotation)) {
      const pair = pairs.get(algorithm)
      // Another server has deleted a key meanwhile, so no key pair was generated for this algorithm. The next run creates the
      // key.
      if (!pair) continue
      await store.insertSigningKey(tx, {
        kid: pair.kid,
        publicJwk: JSON.stringify(pair.publicJwk),
        privateJwk: cipher.encrypt(purpose, Buffer.from(JSON.stringify(pair.privateJwk))),
        activeTime: new Date(firstUse(rows, algorithm, now)).toISOString(),
        createTime: new Date(now).toISOString(),
      })
      made++
    }
    return old.length + made
  })
}

type Rows = readonly store.SigningKeyRow[]

function keysOfAlgorithm(rows: Rows, algorithm: SigningAlgorithm): Rows {
  return rows.filter((row) => algorithmOf(JSON.parse(row.publicJwk) as JWK) === algorithm)
}

/**
 * Time from which a new key signs tokens. It is now only if there are no other keys, since nobody can have fetched the key set
 * before.
 */
function firstUse(rows: Rows, algorithm: SigningAlgorithm, now: number): number {
  if (rows.length === 0) return now
  return now + (keysOfAlgorithm(rows, algorithm).length === 0 ? publishedBeforeFirst : publishedBefore)
}

/** Algorithms for which a new key must be created. */
function missingAlgorithms(rows: Rows, now: number, { algorithms, days }: Rotation): SigningAlgorithm[] {
  return algorithms.filter((algorithm) => {
    const newest = keysOfAlgorithm(rows, algorithm).at(-1)
    return !newest || Date.parse(newest.activeTime) + days * day - publishedBefore <= now
  })
}

/**
 * Keys to delete. A key is deleted when its successor has been in use for longer than tokens are valid. If an algorithm is no
 * longer used, its last key is deleted after the same time.
 */
function expiredKeys(rows: Rows, now: number, { algorithms, days }: Rotation): Rows {
  return signingAlgorithms.flatMap((algorithm) => {
    const same = keysOfAlgorithm(rows, algorithm)
    return same.filter((row, i) => {
      const successor = same[i + 1]
      if (successor) return Date.parse(successor.activeTime) + publishedAfter <= now
      return !algorithms.includes(algorithm) && Date.parse(row.activeTime) + days * day + publishedAfter <= now
    })
  })
}

function decryptKey(cipher: SecretCipher, row: store.SigningKeyRow): SigningKey {
  const plain = cipher.decrypt(purpose, row.privateJwk)
  if (!plain) throw new Error(`signing key ${row.kid} was encrypted with another master key`)
  return {
    kid: row.kid,
    publicJwk: JSON.parse(row.publicJwk) as JWK,
    privateJwk: JSON.parse(plain.toString()) as JWK,
    activeTime: row.activeTime,
  }
}
