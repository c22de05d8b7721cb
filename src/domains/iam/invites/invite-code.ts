// Codes and link keys of invitations. A code is base64 of a JSON object, whose first member is `grp`. A link key is the private key
// that signed the code, so it is short enough for a link. Clients read neither.
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto'

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

/** Text that proves an invitation: a signed code, or the key of a link. `kid` is the ID of the invitation's key. */
export type InviteProof = { kid: string; code?: InviteCode }

/**
 * Signs an invite code with a new key. Returns the code, the public key (DER), and the private key as the key of a link. The server
 * stores neither the code nor the private key. Other codes that are signed with it grant nothing more, since the stored invitation
 * decides the group and the role.
 */
export function writeInviteCode(says: Omit<InviteCode, 'kid' | 'sig'>): {
  code: string
  linkKey: string
  keyId: string
  publicKey: Uint8Array
} {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const der = publicKey.export({ type: 'spki', format: 'der' })
  const kid = keyIdOf(der)
  const sig = sign(null, signedPart({ ...says, kid }), privateKey).toString('base64url')
  const { grp, role, exp, jti } = says
  const code = Buffer.from(JSON.stringify({ grp, role, kid, exp, jti, sig } satisfies InviteCode)).toString('base64')
  const linkKey = privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(pkcs8.length).toString('base64url')
  return { code, linkKey, keyId: kid, publicKey: der }
}

/** Beginning of each Ed25519 private key in the format of RFC 8410. The key's 32 bytes follow. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')

const keyIdOf = (der: Buffer): string => hash('sha256', der, 'base64url')

/** Parses a code or the key of a link. Does not verify the signature of a code. Returns undefined for any other text. */
export function readInviteProof(text: string): InviteProof | undefined {
  if (/^[A-Za-z0-9_-]{43}$/.test(text)) {
    const key = Buffer.concat([pkcs8, Buffer.from(text, 'base64url')])
    const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
    return { kid: keyIdOf(createPublicKey(privateKey).export({ type: 'spki', format: 'der' })) }
  }
  const code = readInviteCode(text)
  return code && { kid: code.kid, code }
}

/** True if the proof is for this public key. The key ID of a link was computed from its private key, so it needs no signature. */
export function isProvenBy({ code }: InviteProof, publicKey: Uint8Array): boolean {
  return code === undefined || isSignedBy(code, publicKey)
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
