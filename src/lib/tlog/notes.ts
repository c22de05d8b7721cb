// Signed notes (c2sp.org/signed-note) with Ed25519: checkpoints of logs, and cosignatures of witnesses
// (c2sp.org/tlog-cosignature).
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto'

/** Kinds of keys, with their numbers in the specification. A log signs notes, and a witness signs checkpoints. */
const keyKinds = { log: 1, witness: 4 } as const
export type KeyKind = keyof typeof keyKinds

/** Public key, with the name and the ID that notes refer to. */
export type NoteKey = { name: string; id: number; kind: KeyKind; publicKey: Buffer }

export type Signature = { name: string; id: number; bytes: Buffer }
/** Signed note. `text` is the part that is signed, and ends with a newline. */
export type Note = { text: string; signatures: Signature[] }

const publicBytes = 32
const idBytes = 4
const timeBytes = 8
const mostNoteBytes = 1 << 16
const mostSignatures = 64
/** Prefixes of the encodings of Ed25519 keys (RFC 8410). */
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex')
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex')

function isKeyName(name: string): boolean {
  return name !== '' && !/[\s+\p{Cc}\p{Z}]/u.test(name)
}

export function noteKey(name: string, kind: KeyKind, publicKey: Uint8Array): NoteKey {
  const about = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(keyKinds[kind]), publicKey])
  return { name, kind, publicKey: Buffer.from(publicKey), id: hash('sha256', about, 'buffer').readUInt32BE() }
}

/** Key in the form of policies: `name+id+key`. */
export function vkeyOf({ name, id, kind, publicKey }: NoteKey): string {
  const key = Buffer.concat([Buffer.of(keyKinds[kind]), publicKey])
  return `${name}+${id.toString(16).padStart(8, '0')}+${key.toString('base64')}`
}

/** Reads a key. Returns `undefined` if the text is not a key, has another kind, or has a wrong ID. */
export function parseVkey(text: string): NoteKey | undefined {
  const [, name, id, encoded] = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? []
  const key = encoded === undefined ? undefined : fromBase64(encoded)
  if (!name || !isKeyName(name) || key?.length !== publicBytes + 1) return undefined
  const kind = key[0] === keyKinds.log ? 'log' : key[0] === keyKinds.witness ? 'witness' : undefined
  if (!kind) return undefined
  const made = noteKey(name, kind, key.subarray(1))
  return made.id === Number.parseInt(id!, 16) ? made : undefined
}

/** Decodes canonical base64. Returns `undefined` for other text. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

/** Creates a key pair, as 32 bytes each. */
export function newKeyPair(): { publicKey: Buffer; privateKey: Buffer } {
  const pair = generateKeyPairSync('ed25519')
  const [publicDer, privateDer] = [
    pair.publicKey.export({ format: 'der', type: 'spki' }),
    pair.privateKey.export({ format: 'der', type: 'pkcs8' }),
  ]
  return { publicKey: publicDer.subarray(-publicBytes), privateKey: privateDer.subarray(-publicBytes) }
}

const privateKeyOf = (bytes: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([privatePrefix, bytes]), format: 'der', type: 'pkcs8' })
const publicKeyOf = (bytes: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([publicPrefix, bytes]), format: 'der', type: 'spki' })

/** Signature line of a note. */
export function signatureLine({ name, id, bytes }: Signature): string {
  return lineOf({ name, id }, bytes)
}

function lineOf({ name, id }: Pick<NoteKey, 'name' | 'id'>, bytes: Uint8Array): string {
  const number = Buffer.alloc(idBytes)
  number.writeUInt32BE(id)
  return `— ${name} ${Buffer.concat([number, bytes]).toString('base64')}\n`
}

/** Signs a text with the key of a log, and returns the signature line. */
export function signLine(text: string, key: NoteKey, privateKey: Uint8Array): string {
  return lineOf(key, sign(null, Buffer.from(text), privateKeyOf(privateKey)))
}

function cosignedText(text: string, seconds: number): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`)
}

/**
 * Signs a checkpoint with the key of a witness, and returns the signature line. It includes the time, in seconds since 1970, at
 * which the witness has seen the checkpoint.
 */
export function cosignLine(text: string, key: NoteKey, privateKey: Uint8Array, seconds: number): string {
  const time = Buffer.alloc(timeBytes)
  time.writeBigUInt64BE(BigInt(seconds))
  return lineOf(key, Buffer.concat([time, sign(null, cosignedText(text, seconds), privateKeyOf(privateKey))]))
}

/** Reads a signed note. Returns `undefined` if the text is not one. */
export function parseNote(note: string): Note | undefined {
  if (note.length > mostNoteBytes || /[\p{Cc}\uFFFD]/u.test(note.replaceAll('\n', ''))) return undefined
  const end = note.lastIndexOf('\n\n')
  if (end < 0 || !note.endsWith('\n')) return undefined
  const signatures = parseSignatures(note.slice(end + 2))
  return signatures && { text: note.slice(0, end + 1), signatures }
}

/** Reads signature lines. There must be at least one, and each must end with a newline. */
export function parseSignatures(text: string): Signature[] | undefined {
  const lines = text.split('\n')
  if (lines.pop() !== '' || lines.length === 0 || lines.length > mostSignatures) return undefined
  const signatures: Signature[] = []
  for (const line of lines) {
    const [, name, encoded] = /^— (\S+) (\S+)$/.exec(line) ?? []
    const bytes = encoded === undefined ? undefined : fromBase64(encoded)
    if (name === undefined || !isKeyName(name) || !bytes || bytes.length <= idBytes) return undefined
    signatures.push({ name, id: bytes.readUInt32BE(), bytes: bytes.subarray(idBytes) })
  }
  return signatures
}

/** Result of a check with one key: signed, not signed, or wrongly signed. One wrong signature makes the whole note invalid. */
export type Signed = { is: 'absent' } | { is: 'wrong' } | { is: 'signed'; seconds: number }

/** `seconds` is the time at which a witness has seen the checkpoint. It is 0 for a log. */
export function signedBy({ text, signatures }: Note, key: NoteKey): Signed {
  const own = signatures.filter(({ name, id }) => name === key.name && id === key.id)
  let seconds: number | undefined
  for (const { bytes } of own) {
    const time = key.kind === 'witness' && bytes.length > timeBytes ? Number(bytes.readBigUInt64BE()) : 0
    const [message, signature] =
      key.kind === 'witness' ? [cosignedText(text, time), bytes.subarray(timeBytes)] : [Buffer.from(text), bytes]
    if (signature.length !== 64 || !verify(null, message, publicKeyOf(key.publicKey), signature)) return { is: 'wrong' }
    seconds = Math.max(seconds ?? 0, time)
  }
  return seconds === undefined ? { is: 'absent' } : { is: 'signed', seconds }
}
