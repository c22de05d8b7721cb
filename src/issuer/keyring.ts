import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import type { Db } from '#db/sql.ts'
import {
  currentSigningKeys,
  type NewKeyPair,
  rotateSigningKeys,
  type SigningKey,
} from '#domains/iam/signing-keys/signing-keys.service.ts'
import type { Sealer } from '#lib/crypto/seal.ts'

export const signingAlgorithm = 'ES256'

type Key = { kid: string; activeTime: number; publicKey: CryptoKey; privateKey: CryptoKey; jwk: JWK }

/** The issuer's keys: the one that signs now, those that verify, and the set that others may see. */
export type Keyring = {
  signer(): { kid: string; key: CryptoKey }
  /** `undefined` for a key that is not, or no longer, ours. */
  verifier(kid: string): CryptoKey | undefined
  jwks(): { keys: JWK[] }
  /** Changes whenever a key is dropped or added; what was verified under another epoch must be verified again. */
  epoch(): number
  /** Reads the keys again; answers with how many others there are now. Call it now and then. */
  refresh(): Promise<number>
  /** Makes and drops keys as their age demands, for all nodes; answers with how many. `tx` runs its transaction. */
  rotate(tx: Db['tx']): Promise<number>
}

/** `now` gives milliseconds since 1970. */
export async function openKeyring(db: Db, sealer: Sealer, now: () => number, rotationDays: number): Promise<Keyring> {
  let keys = new Map<string, Key>()
  let epoch = 0

  const refresh = async (): Promise<number> => {
    const stored = await currentSigningKeys(db, sealer)
    const added = stored.filter(({ kid }) => !keys.has(kid)).length
    const dropped = keys.size - (stored.length - added)
    if (added + dropped === 0) return 0
    keys = new Map(await Promise.all(stored.map(async (key) => [key.kid, await load(key)] as const)))
    epoch++
    return added + dropped
  }
  const rotate = async (tx: Db['tx']): Promise<number> => {
    const changed = await rotateSigningKeys({ db, tx }, sealer, now(), rotationDays, newKeyPair)
    await refresh()
    return changed
  }
  await refresh()
  // Nobody can do anything before there is a first key; whoever opens the database first makes it.
  if (keys.size === 0) await rotate((work, options) => db.tx(work, options))

  return {
    signer() {
      const active = [...keys.values()].filter((key) => key.activeTime <= now())
      const newest = active.at(-1) ?? [...keys.values()][0]
      if (!newest) throw new Error('the issuer has no signing key')
      return { kid: newest.kid, key: newest.privateKey }
    },
    verifier: (kid) => keys.get(kid)?.publicKey,
    jwks: () => ({ keys: [...keys.values()].map((key) => key.jwk) }),
    epoch: () => epoch,
    refresh,
    rotate,
  }
}

const newKeyPair: NewKeyPair = async () => {
  const { publicKey, privateKey } = await generateKeyPair(signingAlgorithm, { extractable: true })
  const publicJwk = await exportJWK(publicKey)
  return {
    kid: await calculateJwkThumbprint(publicJwk),
    publicJwk: publicJwk,
    privateJwk: await exportJWK(privateKey),
  }
}

async function load({ kid, publicJwk, privateJwk, activeTime }: SigningKey): Promise<Key> {
  return {
    kid,
    activeTime: Date.parse(activeTime),
    publicKey: (await importJWK(publicJwk, signingAlgorithm)) as CryptoKey,
    privateKey: (await importJWK(privateJwk, signingAlgorithm)) as CryptoKey,
    jwk: { ...publicJwk, kid, use: 'sig', alg: signingAlgorithm },
  }
}
