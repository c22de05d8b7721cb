import type { JWK } from 'jose'
import type { Db } from '#db/sql.ts'
import type { Sealer } from '#lib/crypto/seal.ts'
import * as store from './signing-keys.store.ts'

export type SigningKey = { kid: string; publicJwk: JWK; privateJwk: JWK; activeTime: string }

/** Makes a key pair; called inside a transaction's retry loop, so it must not depend on anything but itself. */
export type NewKeyPair = () => Promise<{ kid: string; publicJwk: JWK; privateJwk: JWK }>

const day = 24 * 60 * 60 * 1000
/** A new key is published this long before tokens are signed with it, so that verifiers have it by then. */
const publishedBefore = day
/** An old key stays published this long after its last token was signed. */
const publishedAfter = 2 * day

const purpose = 'signing-key'

/** The keys that are in use now. */
export async function currentSigningKeys(db: Db, sealer: Sealer): Promise<SigningKey[]> {
  return (await store.listSigningKeys(db)).map((row) => unsealed(sealer, row))
}

/** Makes, replaces and drops keys as their age demands, in one transaction; answers with how many. */
export async function rotateSigningKeys(
  { db, tx }: { db: Db; tx: Db['tx'] },
  sealer: Sealer,
  now: number,
  rotationDays: number,
  newKeyPair: NewKeyPair,
): Promise<number> {
  if (!isDue(await store.listSigningKeys(db), now, rotationDays)) return 0
  const pair = await newKeyPair()
  return tx(async (tx) => {
    const rows = await store.listSigningKeys(tx)
    const old = expired(rows, now)
    for (const row of old) await store.deleteSigningKey(tx, row.kid)
    if (!needsNew(rows, now, rotationDays)) return old.length
    const activeTime = new Date(rows.length === 0 ? now : now + publishedBefore).toISOString()
    await store.insertSigningKey(tx, {
      kid: pair.kid,
      publicJwk: JSON.stringify(pair.publicJwk),
      privateJwk: sealer.seal(purpose, Buffer.from(JSON.stringify(pair.privateJwk))),
      activeTime,
      createTime: new Date(now).toISOString(),
    })
    return old.length + 1
  })
}

function isDue(rows: readonly store.SigningKeyRow[], now: number, rotationDays: number): boolean {
  return needsNew(rows, now, rotationDays) || expired(rows, now).length > 0
}

function needsNew(rows: readonly store.SigningKeyRow[], now: number, rotationDays: number): boolean {
  const newest = rows.at(-1)
  return !newest || Date.parse(newest.activeTime) + rotationDays * day - publishedBefore <= now
}

/** Those whose successor has been signing for longer than any token of theirs can live. */
function expired(rows: readonly store.SigningKeyRow[], now: number): store.SigningKeyRow[] {
  return rows.filter((_, i) => {
    const successor = rows[i + 1]
    return successor !== undefined && Date.parse(successor.activeTime) + publishedAfter <= now
  })
}

function unsealed(sealer: Sealer, row: store.SigningKeyRow): SigningKey {
  const plain = sealer.unseal(purpose, row.privateJwk)
  if (!plain) throw new Error(`signing key ${row.kid} was sealed under another master key`)
  return {
    kid: row.kid,
    publicJwk: JSON.parse(row.publicJwk) as JWK,
    privateJwk: JSON.parse(plain.toString()) as JWK,
    activeTime: row.activeTime,
  }
}
