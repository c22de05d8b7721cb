// The codes of invites. A code is base64 of a JSON object whose first member is `grp`; clients treat it as opaque.
import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto'

/** What a code says; `sig` covers the rest. */
export type InviteCode = {
  /** The group to join. */
  grp: string
  /** The role to join with. */
  role: string
  /** The key that verifies the code. */
  kid: string
  /** Seconds since 1970. */
  exp: number
  /** The last part of the invite's uid. */
  jti: string
  /** Ed25519, in base64url. */
  sig: string
}

/** The signed text, and the public half (DER) of a key that signs nothing else: its private half ends here. */
export function writeInviteCode(says: Omit<InviteCode, 'kid' | 'sig'>): {
  code: string
  keyId: string
  publicKey: Uint8Array
} {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const der = publicKey.export({ type: 'spki', format: 'der' })
  const kid = hash('sha256', der, 'base64url')
  const sig = sign(null, signedPart({ ...says, kid }), privateKey).toString('base64url')
  const { grp, role, exp, jti } = says
  const code = Buffer.from(JSON.stringify({ grp, role, kid, exp, jti, sig } satisfies InviteCode)).toString('base64')
  return { code, keyId: kid, publicKey: der }
}

const maxLength = 4096

/** `undefined` for a text that is no code; whether a code is genuine is the next question. */
export function readInviteCode(text: string): InviteCode | undefined {
  if (text.length > maxLength || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return undefined
  try {
    const value = JSON.parse(Buffer.from(text, 'base64').toString()) as Record<string, unknown> | null
    const { grp, role, kid, exp, jti, sig } = value ?? {}
    if (![grp, role, kid, jti, sig].every((one) => typeof one === 'string') || !Number.isSafeInteger(exp))
      return undefined
    return { grp, role, kid, exp, jti, sig } as InviteCode
  } catch {
    return undefined
  }
}

/** Whether the key signed what the code says. */
export function isSignedBy(code: InviteCode, publicKey: Uint8Array): boolean {
  const key: KeyObject = createPublicKey({ key: Buffer.from(publicKey), type: 'spki', format: 'der' })
  return verify(null, signedPart(code), key, Buffer.from(code.sig, 'base64url'))
}

function signedPart({ grp, role, kid, exp, jti }: Omit<InviteCode, 'sig'>): Buffer {
  return Buffer.from(JSON.stringify(['pinfold invite', grp, role, kid, exp, jti]))
}
