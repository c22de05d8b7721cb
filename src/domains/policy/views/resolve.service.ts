// Resolves a tag in a snapshot view or a cooldown view. The number of reads is limited, however often the tag has moved.
// Assignments are read from the newest on, and long-lasting assignments are found by probing one time after another.

import type { Reader } from '#db/sql.ts'
import {
  type Age,
  type Assignment,
  createReadBudget,
  problemOf,
  type ReadBudget,
  type Skipped,
  timePlus,
} from './views.model.ts'
import * as store from './views.store.ts'

/**
 * Question about a tag: its digest at the time `until`, or now, with all rows of the tag history. Digests in `accepted` need no
 * minimum age. All tags of one request share the read budget `looks`.
 */
export type Question = {
  until: string
  isNow?: boolean
  age: Age | undefined
  accepted?: readonly string[]
  looks?: ReadBudget
}

/**
 * Time until which rows are read. As of now, all rows are read: times of a tag always increase, so the last row can be later than
 * the clock of this server.
 */
export function rowsOf({ until, isNow }: Pick<Question, 'until' | 'isNow'>): string {
  return isNow ? endless : until
}

/** Text that sorts after every time. */
const endless = '~'

export type Chosen = { digest: string; since: string; imported: boolean }
/**
 * Result for a tag. `latest` is the digest of the tag at that time. If that digest is held back, `chosen` is another one. Without
 * `chosen`, `why` has the reason: there was `no tag`, it was `deleted` at `time`, its manifest is `gone`, or all digests are too
 * `young`.
 */
export type Resolved =
  | { chosen: Chosen; latest: Chosen; passed: readonly store.Row[] }
  | { chosen?: undefined; why: 'no tag' }
  | { chosen?: undefined; why: 'deleted'; time: string; digest: string }
  | { chosen?: undefined; why: 'gone' | 'young'; latest: Chosen; passed: readonly store.Row[] }

/**
 * Digest that is served for a tag. `heldUntil` is the time from which `latest` is served. It is empty if `latest` is `chosen`, or
 * if the time alone does not decide.
 */
export type Served = { chosen: Chosen; latest: Chosen; heldUntil: string }
/** Reason why the tag resolves to nothing. */
export type Unresolved = Exclude<Resolved, { chosen: object }>

type Repo = store.LedgerRepo
type Aged = { age: Age; cut: string; until: string; accepted: readonly string[]; looks: ReadBudget }

/** Newest rows of a tag that are read at once. Most tags have no more rows. */
const pageRows = 64
/** Most rows, the newest first, that are searched for a return to an earlier digest. */
const mostRows = 1000
/** Most digests that are checked, and most assignments of each. */
const mostChecked = 64
const mostStays = 200
/** Most times that are probed for an assignment, and the number of times in one query. */
const mostMoments = 2000
const momentsAtOnce = 200

export async function resolveTag(reader: Reader, repo: Repo, tag: string, question: Question): Promise<Resolved> {
  const { age } = question
  const until = rowsOf(question)
  const last = await store.lastRow(reader, repo, tag, until)
  if (!last) return { why: 'no tag' }
  if (last.deleted) return { why: 'deleted', time: last.time, digest: last.digest }
  const latest = chosenOf(last)
  if (!age) return last.here ? { chosen: latest, latest, passed: [] } : { why: 'gone', latest, passed: [] }
  const { accepted = [], looks = createReadBudget() } = question
  const aged = { age, until, cut: timePlus(question.until, -age.ms), accepted, looks }
  // If the tag has had its digest for long enough, no other rows are read.
  if (last.here && (last.since <= aged.cut || aged.accepted.includes(last.digest))) {
    return { chosen: latest, latest, passed: [] }
  }
  const { row, passed } = await choose(reader, repo, tag, aged)
  return row ? { chosen: chosenOf(row), latest, passed } : { why: 'young', latest, passed }
}

function chosenOf({ digest, time, imported }: store.Row): Chosen {
  return { digest, since: time, imported }
}

type Choice = { row: store.Row | undefined; passed: readonly store.Row[] }

/** The newest assignment of a digest that is old enough. `passed` has the newer assignments that were read. */
async function choose(reader: Reader, repo: Repo, tag: string, aged: Aged): Promise<Choice> {
  const { until, age, cut } = aged
  const known = { countFrom: age.countFrom, cut }
  const page = await store.rowsUntil(reader, repo, tag, { until, known, most: pageRows })
  const base = await newestAssignment(reader, repo, tag, page, aged)
  const oldest = page.at(-1)!.time
  const isWhole = page.length < pageRows || (base !== undefined && base.time >= oldest)
  const after = base?.time ?? ''
  const candidates = isWhole
    ? page.filter(({ time, deleted, known: was }) => time > after && !deleted && was)
    : await store.returnsIn(reader, repo, tag, { after, until, known, among: mostRows, most: mostRows })
  const returned = await firstEligible(reader, repo, tag, candidates, aged)
  const accepted = await newestAccepted(reader, repo, tag, aged)
  const row = [returned, accepted, base].reduce((one, other) =>
    other && (!one || other.time > one.time) ? other : one,
  )
  return { row, passed: row ? page.filter(({ time }) => time > row.time) : page }
}

/** The newest assignment that lasted long enough, began early enough, and has a digest that can be served. */
async function newestAssignment(
  reader: Reader,
  repo: Repo,
  tag: string,
  page: readonly store.Row[],
  aged: Aged,
): Promise<store.Row | undefined> {
  for (const [i, row] of page.entries()) {
    if (row.since > aged.cut || row.deleted || !row.here) continue
    if (await counts(reader, repo, assignmentIn(tag, page, i), aged)) return row
  }
  if (page.length < pageRows) return undefined
  const { hold } = aged.age
  // An assignment of this length contains at least one of these times.
  let moment = [aged.cut, page.at(-1)!.time].sort()[0]!
  for (let looked = 0; looked < mostMoments; looked += momentsAtOnce) {
    const moments = Array.from({ length: momentsAtOnce }, (_, i) => timePlus(moment, -i * hold))
    const stays = await store.assignmentsAt(reader, repo, tag, moments, aged.until)
    for (const stay of stays) {
      if (stay.deletion || !stay.here || stay.since > aged.cut) continue
      if (!(await counts(reader, repo, stay, aged))) continue
      return { ...stay, time: stay.begin, deleted: false, known: true }
    }
    const oldest = stays.at(-1)
    if (!oldest) return undefined
    // The assignment at the last probed time may have begun long before it.
    moment = [oldest.begin, timePlus(moments.at(-1)!, -hold)].sort()[0]!
  }
  return undefined
}

function assignmentIn(tag: string, page: readonly store.Row[], i: number): Assignment {
  const [row, next] = [page[i]!, page[i - 1]]
  const end = next && { time: next.time, deleted: next.deleted, digest: next.digest }
  return { tag, digest: row.digest, begin: row.time, since: row.since, end }
}

/** True if an assignment counts towards the age of its digest. Returns false if the read budget `looks` is used up. */
async function counts(
  reader: Reader,
  repo: Repo,
  stay: Assignment,
  { age, looks }: Pick<Aged, 'age' | 'looks'>,
): Promise<boolean> {
  if (problemOf(stay, age.hold) !== undefined || looks.left-- <= 0) return false
  return stay.end === undefined || !(await store.hadDigestBefore(reader, repo, stay, stay.end.digest))
}

/** The first candidate with a digest that is old enough. Candidates are sorted from new to old. */
async function firstEligible(
  reader: Reader,
  repo: Repo,
  tag: string,
  candidates: readonly store.Row[],
  aged: Aged,
): Promise<store.Row | undefined> {
  const checked = new Set<string>()
  for (const row of candidates) {
    if (!row.here || checked.has(row.digest)) continue
    if (checked.size === mostChecked) return undefined
    checked.add(row.digest)
    if (await isEligible(reader, repo, row.digest, tag, aged)) return row
  }
  return undefined
}

async function newestAccepted(reader: Reader, repo: Repo, tag: string, { accepted, until }: Aged) {
  let newest: store.Row | undefined
  for (const digest of accepted) {
    const row = await store.lastOf(reader, repo, tag, digest, until)
    if (row?.here && (!newest || row.time > newest.time)) newest = row
  }
  return newest
}

/** True if this tag has had the digest for long enough. If other tags of the repository count, any tag. */
export async function isEligible(
  reader: Reader,
  repo: Repo,
  digest: string,
  tag: string,
  { age, cut, until, looks }: Omit<Aged, 'accepted'>,
): Promise<boolean> {
  return (
    (await firstAssignment(reader, repo, digest, tag, { age, began: cut, until, looks, isAny: true })) !== undefined
  )
}

/**
 * Start of the first assignment of a digest that counts and began early enough. With `isAny`, the start of any such assignment.
 */
async function firstAssignment(
  reader: Reader,
  repo: Repo,
  digest: string,
  tag: string,
  { age, began, until, looks, isAny }: { age: Age; began: string; until: string; looks: ReadBudget; isAny: boolean },
): Promise<string | undefined> {
  const under = age.countFrom === 'tag' ? tag : undefined
  let first: string | undefined
  for (const most of [8, mostStays]) {
    if (looks.left <= 0) return first
    const stays = await store.rowsOfDigest(reader, repo, digest, { tag: under, began, until, most })
    for (const stay of stays) {
      if (stay.deletion || stay.since > began) continue
      if ((first === undefined || stay.since < first) && (await counts(reader, repo, stay, { age, looks })))
        first = stay.since
      if (first !== undefined && under !== undefined) return first
    }
    if ((first !== undefined && isAny) || stays.length < most) return first
  }
  return first
}

/**
 * Time until which the result cannot change without a write, because no younger digest is old enough before. The time can be too
 * late for a digest that an upstream had long before its content was stored here.
 */
export async function stableUntil(
  reader: Reader,
  repo: Repo,
  tag: string,
  { age, until, isNow }: Question,
  { chosen, latest, heldUntil, passed }: Served & { passed: readonly store.Row[] },
): Promise<string> {
  if (!isNow || !age || chosen.since === latest.since) return endless
  const cut = timePlus(until, -age.ms)
  const next = await store.firstAfter(reader, repo, age.countFrom === 'tag' ? tag : undefined, cut)
  const begins = [...passed.map(({ since }) => since), next ?? ''].filter((one) => one > cut)
  const times = [...begins.map((one) => timePlus(one, age.ms)), heldUntil]
  return times.filter((one) => one !== '').sort()[0] ?? endless
}

/** Most assignments that an explanation lists as not served. */
const mostSkipped = 20

/** Explanation of a resolved tag. `next` is one of the entries in `skipped`. */
export type Explanation = { skipped: Skipped[]; next: Skipped | undefined }

/** Explains why newer assignments are not served, the newest first. Also says which of them is served next, and when. */
export async function explain(
  reader: Reader,
  repo: Repo,
  tag: string,
  question: Question,
  resolved: Resolved,
): Promise<Explanation> {
  const { age, looks = createReadBudget() } = question
  const until = rowsOf(question)
  const skipped: Skipped[] = []
  if (!age || !('passed' in resolved)) return { skipped, next: undefined }
  for (const [i, row] of resolved.passed.entries()) {
    if (row.deleted) continue
    if (skipped.length === mostSkipped || looks.left <= 0) break
    skipped.push(await skippedOf(reader, repo, assignmentIn(tag, resolved.passed, i), row, { until, age, looks }))
  }
  const [next] = skipped
    .filter(({ eligible }) => eligible !== undefined)
    .sort((a, b) => (a.eligible! < b.eligible! ? -1 : 1))
  return { skipped, next }
}

async function skippedOf(
  reader: Reader,
  repo: Repo,
  stay: Assignment,
  { here }: store.Row,
  { until, age, looks }: { until: string; age: Age; looks: ReadBudget },
): Promise<Skipped> {
  const { digest, begin: time, tag } = stay
  if (!here) return { digest, time, reason: 'gone' }
  const began = await firstAssignment(reader, repo, digest, tag, { age, began: until, until, looks, isAny: false })
  if (began !== undefined) return { digest, time, reason: 'young', eligible: timePlus(began, age.ms) }
  return { digest, time, reason: problemOf(stay, age.hold) ?? 'rolled back' }
}
