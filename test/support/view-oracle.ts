// Digest of a tag at a time or with a minimum age, computed from the whole tag history in the simplest way. The server reads as
// little of it as possible, and must give the same result.

/** Row of the tag history. `digest` is empty for a deletion. Times are numbers. */
export type Move = { time: number; digest: string; source?: 'import' | 'upstream' }
/** Time since which each digest is in the repository, and the quarantined digests. */
export type Contents = { came: Map<string, number>; quarantined: { has(digest: string): boolean } }
export type Asked = {
  tag: string
  /** Time for which the digest is computed. */
  at: number
  /** Minimum age in milliseconds. Undefined for a snapshot view. */
  age?: number
  hold?: number
  anyTag?: boolean
  /** Digests to which the minimum age does not apply. */
  accepted?: readonly string[]
}

/** Digest of the tag, with time and kind of the row that assigned it. If there is no digest, the reason. */
export type Verdict = { digest: string; since: number; imported: boolean } | 'no tag' | 'deleted' | 'gone' | 'young'

/** Rows of each tag, sorted by time. */
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

/**
 * Time from which the last assigned digest is served, if no row is added until then. `undefined` if it already is served, or
 * never will be.
 */
export function heldUntil(history: Map<string, Move[]>, contents: Contents, asked: Asked): number | undefined {
  const [verdict, last] = [judge(history, contents, asked), past(history, asked.tag, asked.at).at(-1)]
  if (typeof verdict === 'string' || !last || last.time === verdict.since) return undefined
  if (!isHere(contents, last.digest)) return undefined
  const stays = goodStays(history, contents, asked).filter(({ digest }) => digest === last.digest)
  // Rows after the requested time are ignored.
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

/** Times during which the tag had a digest. With `count-from` of the repository, of all tags. */
function goodStays(history: Map<string, Move[]>, contents: Contents, asked: Asked): OracleStay[] {
  const tags = asked.anyTag ? [...history.keys()] : [asked.tag]
  return tags.flatMap((tag) => staysOf(past(history, tag, asked.at), contents, asked.hold!))
}

function staysOf(rows: Move[], { came }: Contents, hold: number): OracleStay[] {
  const found: OracleStay[] = []
  for (const [i, { time, digest, source }] of rows.entries()) {
    if (digest === '') continue
    // A digest that was only reported by an upstream could not be pulled here during that time.
    const begin = source === 'upstream' ? Math.max(time, came.get(digest) ?? time) : time
    const next = rows[i + 1]
    const isCut = next !== undefined && next.time - begin < hold
    const isUndone = rows.slice(0, i).some((row) => row.digest === next?.digest)
    if (next?.digest !== '' && !isCut && !isUndone) found.push({ digest, begin })
  }
  return found
}
