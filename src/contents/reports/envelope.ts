// Reader of in-toto statements in a signed envelope (DSSE), alone or in a bundle of Sigstore. Signatures are verified separately:
// the content is read regardless of the signer.
import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'

export type Envelope = { payloadType: string; payload: Buffer; signatures: Buffer[] }

const inToto = 'application/vnd.in-toto+json'
const most = { signatures: 10, signatureBytes: 4096, subjects: 1000 }
/** The most bytes of a payload whose signatures are verified, since it is hashed for each key. */
export const maxSignedBytes = 8 * 2 ** 20

/** Returns undefined if the document is no envelope. Throws Unreadable above the limits of real envelopes. */
export function envelopeIn(document: Json): Envelope | undefined {
  const isBundle = isSigstoreBundle(document)
  const { payloadType, payload, signatures } = isBundle ? asObject(document.dsseEnvelope) : document
  if (isBundle && payload === undefined) throw new Unreadable('UNSUPPORTED', 'the Sigstore bundle has no DSSE envelope')
  if (typeof payloadType !== 'string' || typeof payload !== 'string') return undefined
  if (payloadType !== inToto) throw new Unreadable('UNSUPPORTED', 'the envelope does not contain an in-toto statement')
  const all = objectsIn(signatures)
  if (all.length > most.signatures) {
    throw new Unreadable('LIMIT_EXCEEDED', `the envelope has more than ${most.signatures} signatures`)
  }
  const signed = all.map(({ sig }) => bytesOf(textOf(sig), 'signature'))
  if (signed.some(({ length }) => length > most.signatureBytes)) {
    throw new Unreadable('LIMIT_EXCEEDED', `a signature has more than ${most.signatureBytes} bytes`)
  }
  return { payloadType, payload: bytesOf(payload, 'payload'), signatures: signed.filter(({ length }) => length > 0) }
}

/** Media types of a statement in an envelope (DSSE) and in a bundle of Sigstore, by themselves or as layers of attestations. */
export const isEnvelopeType = (type: string): boolean =>
  /^application\/vnd\.(?:dsse\.envelope\.v1\+json$|dev\.sigstore\.bundle\b)/.test(type)

export const isSigstoreBundle = (document: Json): boolean =>
  /^application\/vnd\.dev\.sigstore\.bundle\b/.test(textOf(document.mediaType))

/** Node ignores characters that are no base64, so two readers might see two documents. */
function bytesOf(text: string, what: string): Buffer {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw new Unreadable('DAMAGED', `the ${what} is not valid base64`)
  return Buffer.from(text, 'base64')
}

export const isInToto = (document: Json): boolean => /^https:\/\/in-toto\.io\/Statement\//.test(textOf(document._type))

/** The digests that a statement of in-toto is about. */
export function subjectsOf(statement: Json): string[] {
  const subjects = objectsIn(statement.subject)
  if (subjects.length > most.subjects) {
    throw new Unreadable('LIMIT_EXCEEDED', `the statement has more than ${most.subjects} subjects`)
  }
  return subjects.flatMap(({ digest }) => {
    const { sha256, sha512 } = asObject(digest)
    return [
      ...(/^[0-9a-f]{64}$/.test(textOf(sha256)) ? [`sha256:${sha256}`] : []),
      ...(/^[0-9a-f]{128}$/.test(textOf(sha512)) ? [`sha512:${sha512}`] : []),
    ]
  })
}

/** Number of signatures that can be verified. */
export const countSignatures = ({ payload, signatures }: Envelope): number =>
  payload.length > maxSignedBytes ? 0 : signatures.length

/**
 * Positions of the keys that have signed the envelope, of public keys in PEM; any one signature is enough. Throws Unreadable if
 * more than `verifiedBytes` bytes have to be hashed, counted for each signature and key that it is compared with.
 */
export function signersOf(envelope: Envelope, keys: readonly string[], verifiedBytes: number): number[] {
  if (countSignatures(envelope) === 0) return []
  const signed = encoded(envelope)
  let left = verifiedBytes
  const isSigner = (pem: string): boolean => {
    const key = createPublicKey(pem)
    for (const signature of envelope.signatures.filter((one) => mayBeOf(key, one))) {
      left -= signed.length
      if (left < 0)
        throw new Unreadable(
          'LIMIT_EXCEEDED',
          'the signatures were not verified: the envelope is too large for its number of signatures and trusted keys',
        )
      if (isSignedBy(key, signed, signature)) return true
    }
    return false
  }
  // The same key may be trusted in several scopes.
  const signers = new Set([...new Set(keys)].filter(isSigner))
  return keys.flatMap((pem, i) => (signers.has(pem) ? [i] : []))
}

/** True if a signature is as long as those of the key are. */
function mayBeOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject, { length }: Buffer): boolean {
  if (type === 'ed25519') return length === 64
  return type === 'ec' ? length <= 72 : length === Math.ceil((details?.modulusLength ?? 0) / 8)
}

/** Signed bytes (the pre-authentication encoding of DSSE): the type and the payload, each behind its length. */
function encoded({ payloadType, payload }: Envelope): Buffer {
  const type = Buffer.from(payloadType)
  return Buffer.concat([Buffer.from(`DSSEv1 ${type.length} `), type, Buffer.from(` ${payload.length} `), payload])
}

function isSignedBy(key: KeyObject, signed: Buffer, signature: Buffer): boolean {
  try {
    if (key.asymmetricKeyType === 'ed25519') return verify(null, signed, key, signature)
    if (key.asymmetricKeyType === 'ec') return verify('sha256', signed, { key, dsaEncoding: 'der' }, signature)
    return [constants.RSA_PKCS1_PADDING, constants.RSA_PKCS1_PSS_PADDING].some((padding) =>
      verify('sha256', signed, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_AUTO }, signature),
    )
  } catch {
    // Not a signature of this kind of key at all.
    return false
  }
}
