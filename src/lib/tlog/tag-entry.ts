// Entries of the transparency log of an organization: one for each row of the tag history, and some about the log itself. An
// entry reveals nothing to readers who do not have its row. docs/reference/ledger-proofs.md documents the format.
import { createHmac, hash } from 'node:crypto'

/**
 * Kinds of entries. `live` was written when the tag changed. `import` comes from another registry. `backfill` is for a row that
 * is older than the log.
 */
const entryKinds = ['live', 'import', 'backfill'] as const
export type EntryKind = (typeof entryKinds)[number]

/**
 * Entry about a tag. `prev` is the leaf hash of the previous entry about the same tag, or empty for the first one. Hashes are
 * hex.
 */
export type TagEntry = {
  chain: string
  seq: number
  prev: string
  time: string
  kind: EntryKind
  commitment: string
}

/** Tag history row behind an entry, with the path of its repository at that time. The nonce prevents guesses of the row. */
export type Opening = {
  organization: string
  path: string
  tag: string
  time: string
  event: string
  digest: string
  previousDigest: string
  actor: string
  source: string
  /** 16 random bytes, as hex. */
  nonce: string
}

const entryHeader = 'pinfold-tag/1'
const members = [
  'actor',
  'digest',
  'event',
  'nonce',
  'organization',
  'path',
  'previousDigest',
  'source',
  'tag',
  'time',
] as const satisfies readonly (keyof Opening)[]

const sha256 = (text: string | Uint8Array): string => hash('sha256', text)

export function entryText({ chain, seq, prev, time, kind, commitment }: TagEntry): string {
  return `${[entryHeader, chain, seq, prev || '-', time, kind, commitment].join('\n')}\n`
}

const entryPattern = new RegExp(
  `^${entryHeader}\\n([0-9a-f]{64})\\n(0|[1-9]\\d{0,14})\\n(-|[0-9a-f]{64})\\n` +
    `(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\\n(${entryKinds.join('|')})\\n([0-9a-f]{64})\\n$`,
)

/** Parses an entry. Returns `undefined` if the text is not an entry about a tag. */
export function parseEntry(text: string): TagEntry | undefined {
  const [, chain, seq, prev, time, kind, commitment] = entryPattern.exec(text) ?? []
  if (commitment === undefined || (seq === '0') !== (prev === '-')) return undefined
  const before = prev === '-' ? '' : prev!
  return { chain: chain!, seq: Number(seq), prev: before, time: time!, kind: kind as EntryKind, commitment }
}

/** JSON of the row, without spaces and with sorted members, so that each row has exactly one text. */
export function openingText(opening: Opening): string {
  const { actor, digest, event, nonce, organization, path, previousDigest, source, tag, time } = opening
  return JSON.stringify({ actor, digest, event, nonce, organization, path, previousDigest, source, tag, time })
}

/** Parses the JSON of a row. Returns `undefined` if the text is not exactly that of `openingText`. */
export function parseOpening(text: string): Opening | undefined {
  try {
    const opening = JSON.parse(text) as Opening
    const isWhole = members.every((name) => typeof opening[name] === 'string')
    return isWhole && openingText(opening) === text ? opening : undefined
  } catch {
    return undefined
  }
}

export function commitmentOf(opening: string): string {
  return sha256(opening)
}

/** Salt for a name, as hex. No other salt can be computed from it. */
export function saltOf(secret: Uint8Array, name: string): string {
  return createHmac('sha256', secret).update(name).digest('hex')
}

/** Hash that identifies a tag at a path of the organization. All its entries have the same one. `salt` is hex. */
export function chainOf(
  salt: string,
  { organization, path, tag }: Pick<Opening, 'organization' | 'path' | 'tag'>,
): string {
  return sha256(Buffer.concat([Buffer.from(salt, 'hex'), Buffer.from(`${organization}\n${path}\n${tag}`)]))
}

/**
 * Text of the first entry of a log. It has the origin of the log, the hash of its secret, and the last checkpoint of the log that
 * it replaces.
 */
export function logEntryText(
  origin: string,
  secret: Uint8Array,
  former?: { origin: string; size: number; root: Buffer },
): string {
  const before = former ? `${former.origin} ${former.size} ${former.root.toString('hex')}` : '-'
  return `pinfold-log/1\n${origin}\n${sha256(secret)}\n${before}\n`
}

/** Text of an entry that adds a key to the log. */
export function keyEntryText(vkey: string): string {
  return `pinfold-key/1\n${vkey}\n`
}
