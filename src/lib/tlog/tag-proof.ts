// Verifier of a file that proves that a tag pointed to a digest at a time. Uses neither the network nor a clock.
import { type Checkpoint, parseCheckpoint } from './checkpoint.ts'
import { isIncluded, leafHash } from './merkle.ts'
import { parseNote, type Signed, signedBy } from './notes.ts'
import { isWitnessed, type Policy } from './policy.ts'
import { type LogProof, parseProofs, proofText } from './proof-text.ts'
import {
  chainOf,
  commitmentOf,
  type EntryKind,
  type Opening,
  parseEntry,
  parseOpening,
  type TagEntry,
} from './tag-entry.ts'

/** Claim that a proof is checked against. If `host` is empty, the host of the log is not checked. */
export type Claim = { host: string; path: string; tag: string; digest: string; at: string }

/**
 * Result of a valid proof. `until` is the time of the next assignment, or empty if the proof does not contain it. `witnesses` are
 * those that have signed, each with the time at which it has seen the log.
 */
export type Proved = {
  origin: string
  from: string
  until: string
  kind: EntryKind
  size: number
  witnesses: { name: string; seconds: number }[]
}

/** Error with the reason why a file does not prove the claim. */
export class NotProved extends Error {
  override name = 'NotProved'
}

/**
 * Data in a proof beside the entry's hash. It has the text of the entry. For the first entry, it also has the tag history row and
 * the salt of the path.
 */
type ProofExtra = { entry: string; opening?: string; salt?: string }

/** Text of a proof file: the proof of an entry and, if there is one, that of the next entry about the same tag. */
export function tagProofText(proofs: readonly (Omit<LogProof, 'extra'> & { beside: ProofExtra })[]): string {
  return proofs
    .map(({ beside, ...proof }) => proofText({ ...proof, extra: Buffer.from(JSON.stringify(beside)) }))
    .join('')
}

/** Verifies a proof file. Throws NotProved with the reason if it does not prove the claim. */
export function provedBy(text: string, policy: Policy, claim: Claim): Proved {
  const proofs = parseProofs(text)
  if (!proofs || proofs.length > 2)
    throw new NotProved('the file must have one or two proofs in the format c2sp.org/tlog-proof')
  const [first, next] = proofs.map((proof) => verifyProof(proof, policy))
  const { entry, beside, head } = first!
  checkOpening(readOpening(entry, beside, head), claim, head)
  if (entry.time > claim.at)
    throw new NotProved(`the tag was assigned to this digest at ${entry.time}, which is after ${claim.at}`)
  if (next) checkNext(first!, next, claim)
  const { origin, size } = head.checkpoint
  return {
    origin,
    from: entry.time,
    until: next?.entry.time ?? '',
    kind: entry.kind,
    size,
    witnesses: (next ?? first!).head.witnesses,
  }
}

type VerifiedCheckpoint = { checkpoint: Checkpoint; witnesses: { name: string; seconds: number }[] }
type VerifiedEntry = { entry: TagEntry; leaf: Buffer; beside: ProofExtra; head: VerifiedCheckpoint }

/** Verified entry of a trusted log, with a checkpoint that enough witnesses have signed. */
function verifyProof(proof: LogProof, policy: Policy): VerifiedEntry {
  const head = verifyCheckpoint(proof.checkpoint, policy)
  const beside = readExtra(proof.extra)
  const leaf = leafHash(Buffer.from(beside.entry))
  const { size, root } = head.checkpoint
  if (!isIncluded(leaf, { index: proof.index, size, root, proof: proof.hashes })) {
    throw new NotProved(
      'the entry is not in the log: its inclusion proof does not match the root hash of the checkpoint',
    )
  }
  const entry = parseEntry(beside.entry)
  if (!entry) throw new NotProved('the entry is not a tag entry')
  return { entry, leaf, beside, head }
}

function verifyCheckpoint(note: string, policy: Policy): VerifiedCheckpoint {
  const parsed = parseNote(note)
  const checkpoint = parsed && parseCheckpoint(parsed.text)
  if (!parsed || !checkpoint) throw new NotProved('the checkpoint is not a signed note with a size and a root')
  const logs = policy.logs.filter(({ name }) => name === checkpoint.origin)
  if (logs.length === 0) throw new NotProved(`the policy has no key for the log ${checkpoint.origin}`)
  const isBy = (signed: Signed): boolean => {
    if (signed.is === 'wrong') throw new NotProved('a signature of the checkpoint is invalid')
    return signed.is === 'signed'
  }
  if (logs.filter((key) => isBy(signedBy(parsed, key))).length === 0) {
    throw new NotProved('the checkpoint is not signed with a log key from the policy')
  }
  const seen = policy.witnesses.map((key) => ({ key, signed: signedBy(parsed, key) }))
  const witnesses = seen.flatMap(({ key, signed }) =>
    isBy(signed) && signed.is === 'signed' ? [{ name: key.name, seconds: signed.seconds }] : [],
  )
  if (!isWitnessed(policy.quorum, (key) => seen.some((one) => one.key === key && one.signed.is === 'signed'))) {
    throw new NotProved('the checkpoint lacks the witness signatures that the policy requires')
  }
  return { checkpoint, witnesses }
}

function readExtra(extra: Buffer): ProofExtra {
  try {
    const beside = JSON.parse(extra.toString()) as ProofExtra
    if (typeof beside.entry === 'string') return beside
  } catch {
    // Treated like a proof without an entry.
  }
  throw new NotProved('the proof does not include its log entry')
}

function readOpening(
  { chain, commitment, time }: TagEntry,
  { opening: text, salt }: ProofExtra,
  { checkpoint }: VerifiedCheckpoint,
): Opening {
  const opening = typeof text === 'string' ? parseOpening(text) : undefined
  if (!opening || typeof salt !== 'string' || !/^[0-9a-f]{64}$/.test(salt)) {
    throw new NotProved('the proof does not include the tag history row of its entry')
  }
  if (commitmentOf(text!) !== commitment) throw new NotProved('the tag history row does not match the entry')
  if (chainOf(salt, opening) !== chain)
    throw new NotProved('the entry and the tag history row are about different tags')
  if (opening.time > time) throw new NotProved('the time of the entry is before the time of the tag history row')
  if (!new RegExp(`/ledger/${opening.organization}(?:/[0-9]+-[0-9a-f]{8})?$`).test(checkpoint.origin)) {
    throw new NotProved('the tag history row and the log belong to different organizations')
  }
  return opening
}

function checkOpening(
  { path, tag, digest, event, time }: Opening,
  claim: Claim,
  { checkpoint }: VerifiedCheckpoint,
): void {
  const host = checkpoint.origin.split('/')[0]!
  if (claim.host !== '' && claim.host !== host) throw new NotProved(`the log belongs to ${host}, not to ${claim.host}`)
  if (path !== claim.path || tag !== claim.tag) throw new NotProved(`the proof is about another tag, ${path}:${tag}`)
  if (event === 'deleted') throw new NotProved(`the tag was deleted at ${time}; before that it pointed to ${digest}`)
  if (digest !== claim.digest) throw new NotProved(`the tag pointed to another digest, ${digest}`)
}

/** Checks the next entry. It proves when the first assignment ended, and that there was no other assignment in between. */
function checkNext({ entry, leaf, head }: VerifiedEntry, next: VerifiedEntry, { at }: Claim): void {
  if (next.head.checkpoint.origin !== head.checkpoint.origin)
    throw new NotProved('the two proofs are from different logs')
  const follows = next.entry.chain === entry.chain && next.entry.seq === entry.seq + 1
  if (!follows || next.entry.prev !== leaf.toString('hex')) {
    throw new NotProved('the second entry does not directly follow the first')
  }
  if (next.entry.time <= at)
    throw new NotProved(`the tag was updated again at ${next.entry.time}, which is not after ${at}`)
}
