// Reader of in-toto statements in a signed DSSE envelope. The envelope can be part of a Sigstore bundle. Reading ignores the
// signatures, which are verified separately.
import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'

export type Envelope = { payloadType: string; payload: Buffer; signatures: Buffer[] }

const inToto = 'application/vnd.in-toto+json'
const most = { signatures: 10, signatureBytes: 4096, subjects: 1000 }
/** Limit on the bytes of a payload whose signatures are verified. The payload is hashed for each key. */
export const maxSignedBytes = 8 * 2 ** 20

/** Finds the envelope in a document. Returns undefined if there is none. Throws Unreadable above the limits of real envelopes. */
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

/** True for media types of DSSE envelopes and of Sigstore bundles, as documents or as layers of attestations. */
export const isEnvelopeType = (type: string): boolean =>
  /^application\/vnd\.(?:dsse\.envelope\.v1\+json$|dev\.sigstore\.bundle\b)/.test(type)

export const isSigstoreBundle = (document: Json): boolean =>
  /^application\/vnd\.dev\.sigstore\.bundle\b/.test(textOf(document.mediaType))

/** Node ignores characters that are not base64. Two readers could then decode different documents, so such text is refused. */
function bytesOf(text: string, what: string): Buffer {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw new Unreadable('DAMAGED', `the ${what} is not valid base64`)
  return Buffer.from(text, 'base64')
}

export const isInToto = (document: Json): boolean => /^https:\/\/in-toto\.io\/Statement\//.test(textOf(document._type))

/** Digests of the subjects of an in-toto statement. */
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
 * Positions of the keys that have signed the envelope. `keys` are public keys in PEM. One valid signature of a key is enough.
 * Throws Unreadable if verifying would hash more than `verifiedBytes` bytes. The payload is counted for each signature and each
 * key.
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
  // Several scopes can trust the same key, so equal keys are verified once.
  const signers = new Set([...new Set(keys)].filter(isSigner))
  return keys.flatMap((pem, i) => (signers.has(pem) ? [i] : []))
}

/** True if the signature is as long as signatures of the key. */
function mayBeOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject, { length }: Buffer): boolean {
  if (type === 'ed25519') return length === 64
  return type === 'ec' ? length <= 72 : length === Math.ceil((details?.modulusLength ?? 0) / 8)
}

/**
 * The bytes that are signed, which DSSE calls the pre-authentication encoding. They consist of the type and the payload, with the
 * length before each.
 */
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
    // The signature cannot belong to this kind of key.
    return false
  }
}
