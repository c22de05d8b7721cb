// Digest of a tag as of a time or at an age, computed from its whole history in the simplest way. The server reads as little as
// it can, and must give the same answer.

/** A row of the ledger; `digest` is empty for a deletion. Times are numbers. */
export type Move = { time: number; digest: string; source?: 'import' | 'upstream' }
/** Since when each digest is in the repository, and which are in quarantine. */
export type Contents = { came: Map<string, number>; quarantined: { has(digest: string): boolean } }
export type Asked = {
  tag: string
  /** The moment. */
  at: number
  /** Minimum age in milliseconds; without one, the tag as it was. */
  age?: number
  hold?: number
  anyTag?: boolean
  /** Digests that need no minimum age. */
  accepted?: readonly string[]
}

/** The digest with the time and the kind of the row since which the tag has it, or the reason for none. */
export type Verdict = { digest: string; since: number; imported: boolean } | 'no tag' | 'deleted' | 'gone' | 'young'

/** The rows of each tag in the order of their times. */
export function judge(history: Map<string, Move[]>, contents: Contents, asked: Asked): Verdict {
  const rows = past(history, asked.tag, asked.at)
  const last = rows.at(-1)
  if (last === undefined) return 'no tag'
  if (last.digest === '') return 'deleted'
  if (asked.age === undefined) return isHere(contents, last.digest) ? served(last) : 'gone'
  const old = new Set(asked.accepted)
  for (const { digest, begin } of goodStays(history, contents, asked)) {
    if (begin <= asked.at - asked.age) old.add(digest)
  }
  const newest = rows.findLast(({ digest }) => isHere(contents, digest) && old.has(digest))
  return newest ? served(newest) : 'young'
}

/** When the last assignment will be served if nothing is written until then; `undefined` where it is, or never will be. */
export function heldUntil(history: Map<string, Move[]>, contents: Contents, asked: Asked): number | undefined {
  const [verdict, last] = [judge(history, contents, asked), past(history, asked.tag, asked.at).at(-1)]
  if (typeof verdict === 'string' || !last || last.time === verdict.since) return undefined
  if (!isHere(contents, last.digest)) return undefined
  const stays = goodStays(history, contents, asked).filter(({ digest }) => digest === last.digest)
  // Moves after the time of the question were not known then.
  const begins = stays.map(({ begin }) => begin).filter((begin) => begin <= asked.at)
  return begins.length === 0 ? undefined : Math.min(...begins) + asked.age!
}

function past(history: Map<string, Move[]>, tag: string, at: number): Move[] {
  return history.get(tag)!.filter(({ time }) => time <= at)
}

function isHere({ came, quarantined }: Contents, digest: string): boolean {
  return came.has(digest) && !quarantined.has(digest)
}

function served({ digest, time, source }: Move): Verdict {
  return { digest, since: time, imported: source === 'import' }
}

type OracleStay = { digest: string; begin: number }

/** Stays that count, under the tag, or under any tag if the question says so. */
function goodStays(history: Map<string, Move[]>, contents: Contents, asked: Asked): OracleStay[] {
  const tags = asked.anyTag ? [...history.keys()] : [asked.tag]
  return tags.flatMap((tag) => staysOf(past(history, tag, asked.at), contents, asked.hold!))
}

function staysOf(rows: Move[], { came }: Contents, hold: number): OracleStay[] {
  const found: OracleStay[] = []
  for (const [i, { time, digest, source }] of rows.entries()) {
    if (digest === '') continue
    // A stay that was only seen at an upstream could not be pulled here.
    const begin = source === 'upstream' ? Math.max(time, came.get(digest) ?? time) : time
    const next = rows[i + 1]
    const isCut = next !== undefined && next.time - begin < hold
    const isUndone = rows.slice(0, i).some((row) => row.digest === next?.digest)
    if (next?.digest !== '' && !isCut && !isUndone) found.push({ digest, begin })
  }
  return found
}
