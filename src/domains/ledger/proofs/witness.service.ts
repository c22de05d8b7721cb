// Witness for logs of other servers (c2sp.org/tlog-witness). It cosigns checkpoints, and never two that contradict each other.
import type { App } from '#app.ts'
import { type Checkpoint, parseCheckpoint, readSize } from '#lib/tlog/checkpoint.ts'
import { emptyRoot, hashBytes, isConsistent } from '#lib/tlog/merkle.ts'
import {
  cosignLine,
  fromBase64,
  type NoteKey,
  newKeyPair,
  noteKey,
  parseNote,
  parseVkey,
  signedBy,
  vkeyOf,
} from '#lib/tlog/notes.ts'
import * as store from './cosignatures.store.ts'

/** Answer in the terms of the protocol. For status 409, the body has the size of the checkpoint that this witness saw last. */
export type WitnessAnswer = { status: 200 | 400 | 403 | 404 | 409 | 422; body: string }

type By = Pick<App, 'db' | 'cipher' | 'clock' | 'config'>
type Shown = { old: number; proof: Buffer[]; text: string; checkpoint: Checkpoint; isSigned: (key: NoteKey) => boolean }

const mostHashes = 63
/** Options of transactions that lock the row of the log. */
const rowLocks = { isolation: 'rowLocks' } as const

/** Public key with which this server signs as a witness. It is created on first use, with this `name`. */
export async function witnessVkey(by: By, name: string): Promise<string> {
  return vkeyOf((await readOwnKey(by, name)).key)
}

async function readOwnKey({ db, cipher, clock }: By, name: string): Promise<{ key: NoteKey; privateKey: Buffer }> {
  let stored = await store.findWitnessKey(db)
  if (!stored) {
    const { publicKey, privateKey } = newKeyPair()
    const made = {
      vkey: vkeyOf(noteKey(name, 'witness', publicKey)),
      privateKey: cipher.encrypt('ledger-key', privateKey),
    }
    await db.tx((tx) => store.keepWitnessKey(tx, made, clock().toISOString()))
    stored = (await store.findWitnessKey(db))!
  }
  const [key, privateKey] = [parseVkey(stored.vkey), cipher.decrypt('ledger-key', stored.privateKey)]
  if (!key || !privateKey) throw new Error('the key of the witness is encrypted under another master key')
  return { key, privateKey }
}

/**
 * Verifies a checkpoint and signs it. The request must have a consistency proof from the last checkpoint that this witness has
 * seen.
 */
export async function cosign(by: By, request: string, name: string): Promise<WitnessAnswer> {
  const shown = readRequest(request)
  if (!shown) return { status: 400, body: 'the request is not a valid request of c2sp.org/tlog-witness\n' }
  const { old, checkpoint, text } = shown
  const keys = by.config.witnessLogs.filter((key) => key.name === checkpoint.origin)
  if (keys.length === 0) return { status: 404, body: 'this witness does not cosign this log\n' }
  if (!keys.some(shown.isSigned)) return { status: 403, body: 'the checkpoint is not signed with a key of the log\n' }
  if (old > checkpoint.size) return { status: 400, body: 'the old size is larger than the size of the checkpoint\n' }
  const now = by.clock()
  const refused = await by.db.tx(async (tx): Promise<WitnessAnswer | undefined> => {
    const head = await store.lockHead(tx, checkpoint.origin, emptyRoot.toString('base64'))
    const conflict: WitnessAnswer = { status: 409, body: `${head.size}\n` }
    if (head.size !== old) return conflict
    const root = checkpoint.root.toString('base64')
    if (old === checkpoint.size && root !== head.root) return conflict
    if (!isConsistent({ size: head.size, root: Buffer.from(head.root, 'base64') }, checkpoint, shown.proof)) {
      return { status: 422, body: 'the consistency proof from the last checkpoint to this one is invalid\n' }
    }
    await store.noteHead(tx, checkpoint.origin, { size: checkpoint.size, root, time: now.toISOString() })
    return undefined
  }, rowLocks)
  if (refused) return refused
  const { key, privateKey } = await readOwnKey(by, name)
  return { status: 200, body: cosignLine(text, key, privateKey, Math.floor(now.getTime() / 1000)) }
}

function readRequest(request: string): Shown | undefined {
  const end = request.indexOf('\n\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = request.slice(0, end).split('\n')
  const old = first.startsWith('old ') ? readSize(first.slice('old '.length)) : undefined
  const proof = lines.map(fromBase64)
  const note = parseNote(request.slice(end + 2))
  const checkpoint = note && parseCheckpoint(note.text)
  if (old === undefined || !checkpoint || proof.length > mostHashes) return undefined
  if (!proof.every((hash) => hash?.length === hashBytes)) return undefined
  const isSigned = (key: NoteKey) => signedBy(note, key).is === 'signed'
  return { old, proof: proof as Buffer[], text: note.text, checkpoint, isSigned }
}
