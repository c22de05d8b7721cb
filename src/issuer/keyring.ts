import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import type { Db } from '#db/sql.ts'
import { currentSigningKeys, type NewKeyPair, type SigningKey } from '#domains/iam/signing-keys/signing-keys.service.ts'
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
  /** Makes, publishes and drops keys as their age demands; call it now and then. */
  refresh(): Promise<void>
}

/** `now` gives milliseconds since 1970. */
export async function openKeyring(db: Db, sealer: Sealer, now: () => number, rotationDays: number): Promise<Keyring> {
  let keys = new Map<string, Key>()
  let epoch = 0

  const refresh = async (): Promise<void> => {
    const stored = await currentSigningKeys(db, sealer, now(), rotationDays, newKeyPair)
    const same = stored.length === keys.size && stored.every(({ kid }) => keys.has(kid))
    if (same) return
    keys = new Map(await Promise.all(stored.map(async (key) => [key.kid, await load(key)] as const)))
    epoch++
  }
  await refresh()

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
