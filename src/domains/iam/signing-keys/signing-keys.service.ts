import type { JWK } from 'jose'
import type { Db } from '#db/sql.ts'
import type { Sealer } from '#lib/crypto/seal.ts'
import { algorithmOf, type SigningAlgorithm, signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import * as store from './signing-keys.store.ts'

export type SigningKey = { kid: string; publicJwk: JWK; privateJwk: JWK; activeTime: string }

/** Creates a key pair. Runs in the retry loop of a transaction, so it must have no side effects. */
export type NewKeyPair = (algorithm: SigningAlgorithm) => Promise<{ kid: string; publicJwk: JWK; privateJwk: JWK }>

const day = 24 * 60 * 60 * 1000
/** Time for which a new key is published before it signs tokens, so that verifiers have it by then, in milliseconds. */
const publishedBefore = day
/** The same time for the first key of another algorithm: by then every node has the key, and no cached key set is older. */
const publishedBeforeFirst = 10 * 60 * 1000
/** Time for which an old key stays published after it has signed its last token, in milliseconds. */
const publishedAfter = 2 * day

const purpose = 'signing-key'

/** Present signing keys, unsealed. */
export async function currentSigningKeys(db: Db, sealer: Sealer): Promise<SigningKey[]> {
  return (await store.listSigningKeys(db)).map((row) => decryptKey(sealer, row))
}

export type Rotation = { days: number; algorithms: readonly SigningAlgorithm[] }

/** Creates, replaces and deletes keys by their age, in one transaction. Returns the number of changes. */
export async function rotateSigningKeys(
  { db, tx }: { db: Db; tx: Db['tx'] },
  sealer: Sealer,
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
      // Another node has deleted a key meanwhile. The next run creates its successor.
      if (!pair) continue
      await store.insertSigningKey(tx, {
        kid: pair.kid,
        publicJwk: JSON.stringify(pair.publicJwk),
        privateJwk: sealer.seal(purpose, Buffer.from(JSON.stringify(pair.privateJwk))),
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

/** Time at which a new key starts to sign: at once only if nobody can have read the key set. */
function firstUse(rows: Rows, algorithm: SigningAlgorithm, now: number): number {
  if (rows.length === 0) return now
  return now + (keysOfAlgorithm(rows, algorithm).length === 0 ? publishedBeforeFirst : publishedBefore)
}

/** Algorithms that need a new key. */
function missingAlgorithms(rows: Rows, now: number, { algorithms, days }: Rotation): SigningAlgorithm[] {
  return algorithms.filter((algorithm) => {
    const newest = keysOfAlgorithm(rows, algorithm).at(-1)
    return !newest || Date.parse(newest.activeTime) + days * day - publishedBefore <= now
  })
}

/**
 * Keys whose successor has been signing for longer than the life of any token. The last key of an unused algorithm expires when
 * its successor would have been used for that time.
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

function decryptKey(sealer: Sealer, row: store.SigningKeyRow): SigningKey {
  const plain = sealer.unseal(purpose, row.privateJwk)
  if (!plain) throw new Error(`signing key ${row.kid} was encrypted with another master key`)
  return {
    kid: row.kid,
    publicJwk: JSON.parse(row.publicJwk) as JWK,
    privateJwk: JSON.parse(plain.toString()) as JWK,
    activeTime: row.activeTime,
  }
}
