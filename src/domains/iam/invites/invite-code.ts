// Invite codes. A code is base64 of a JSON object, whose first member is `grp`. Clients do not read its content.
import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto'

/** Content of an invite code. `sig` is the signature of the other members. */
export type InviteCode = {
  /** Uid of the group to join. */
  grp: string
  /** Uid of the role that the new member gets. */
  role: string
  /** ID of the key that verifies the code. */
  kid: string
  /** Time of expiry, in seconds since 1970. */
  exp: number
  /** Last segment of the invitation's uid. */
  jti: string
  /** Ed25519 signature, in base64url. */
  sig: string
}

/**
 * Signs an invite code with a new key. Returns the code and the public key (DER). The private key is discarded, so that nothing
 * else can be signed with it.
 */
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

/** Parses an invite code without verifying its signature. Returns undefined if the text is not an invite code. */
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

/** True if the signature of the code is from this key. */
export function isSignedBy(code: InviteCode, publicKey: Uint8Array): boolean {
  const key: KeyObject = createPublicKey({ key: Buffer.from(publicKey), type: 'spki', format: 'der' })
  return verify(null, signedPart(code), key, Buffer.from(code.sig, 'base64url'))
}

function signedPart({ grp, role, kid, exp, jti }: Omit<InviteCode, 'sig'>): Buffer {
  return Buffer.from(JSON.stringify(['pinfold invite', grp, role, kid, exp, jti]))
}
