// What a tag stands for as of a moment or at an age, worked out from its whole history in the simplest way: what the
// server, which reads as little as it can, must answer.

/** A row of the ledger; `digest` is empty for a deletion. Times are numbers. */
export type Move = { time: number; digest: string }
export type Asked = {
  tag: string
  /** The moment. */
  at: number
  /** How old it has to be; without one the tag as it was. */
  age?: number
  hold?: number
  anyTag?: boolean
}

/** The digest and since when, or why there is none. */
export type Verdict = { digest: string; since: number } | 'no tag' | 'deleted' | 'gone' | 'young'

/** The rows of each tag in the order of their times; `here` are the digests that can be served. */
export function judge(history: Map<string, Move[]>, here: Set<string>, asked: Asked): Verdict {
  const past = (tag: string): Move[] => history.get(tag)!.filter(({ time }) => time <= asked.at)
  const rows = past(asked.tag)
  const last = rows.at(-1)
  if (last === undefined) return 'no tag'
  if (last.digest === '') return 'deleted'
  if (asked.age === undefined) {
    return here.has(last.digest) ? { digest: last.digest, since: last.time } : 'gone'
  }
  const old = new Set<string>()
  for (const tag of asked.anyTag ? history.keys() : [asked.tag]) {
    for (const stay of stays(past(tag))) {
      if (stay.good(asked.hold!) && stay.begin <= asked.at - asked.age) old.add(stay.digest)
    }
  }
  for (const { time, digest } of [...rows].reverse()) {
    if (digest !== '' && here.has(digest) && old.has(digest)) return { digest, since: time }
  }
  return 'young'
}

type OracleStay = { digest: string; begin: number; good(hold: number): boolean }

function stays(rows: Move[]): OracleStay[] {
  const found: OracleStay[] = []
  for (const [i, { time: begin, digest }] of rows.entries()) {
    if (digest === '') continue
    const next = rows[i + 1]
    const before = new Set(rows.slice(0, i).map((row) => row.digest))
    const good = (hold: number): boolean => {
      if (next === undefined) return true
      if (next.digest === '') return false
      if (next.time - begin < hold) return false
      return !before.has(next.digest)
    }
    found.push({ digest, begin, good })
  }
  return found
}
