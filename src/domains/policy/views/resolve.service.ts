// What a tag stands for as of a moment, or at an age. The work is bounded however often the tag has moved: assignments are
// looked for from the newest on, and stays that are long enough by looking at one moment after another.

import type { Reader } from '#db/sql.ts'
import { type Age, type Looks, problemOf, type Skipped, type Stay, someLooks, timePlus } from './views.model.ts'
import * as store from './views.store.ts'

/**
 * What is asked of a tag: as the ledger was at `until`, or as it is where that is now, by all of its rows; `accepted` digests
 * need no age. Questions of one request share `looks`.
 */
export type Question = {
  until: string
  isNow?: boolean
  age: Age | undefined
  accepted?: readonly string[]
  looks?: Looks
}

/** The rows of a tag follow each other, so the last one may be of a time that has not come by this clock. */
export function rowsOf({ until, isNow }: Pick<Question, 'until' | 'isNow'>): string {
  return isNow ? endless : until
}

/** After every time. */
const endless = '~'

export type Chosen = { digest: string; since: string; imported: boolean }
/**
 * `latest` is what the tag pointed to then, and differs from what is chosen when that is held back. Without a choice, `why`
 * says so: there was `no tag`, it was `deleted` at `time`, its manifest is `gone`, or nothing is old enough, which is `young`.
 */
export type Resolved =
  | { chosen: Chosen; latest: Chosen; passed: readonly store.Row[] }
  | { chosen?: undefined; why: 'no tag' }
  | { chosen?: undefined; why: 'deleted'; time: string; digest: string }
  | { chosen?: undefined; why: 'gone' | 'young'; latest: Chosen; passed: readonly store.Row[] }

/** `heldUntil` is when `latest` is served; empty where that is not only a matter of time, or where it is `chosen`. */
export type Served = { chosen: Chosen; latest: Chosen; heldUntil: string }
/** Why the tag stands for nothing. */
export type Nothing = Exclude<Resolved, { chosen: object }>

type Repo = store.LedgerRepo
type Aged = { age: Age; cut: string; until: string; accepted: readonly string[]; looks: Looks }

/** How many of the newest rows are read at once; most tags need no more. */
const pageRows = 64
/** How many of the newest rows are looked through for a return to an earlier digest. */
const mostRows = 1000
/** How many digests are checked, and how many stays of one. */
const mostChecked = 64
const mostStays = 200
/** How many moments are looked at for a stay, and how many at once. */
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
  const { accepted = [], looks = someLooks() } = question
  const aged = { age, until, cut: timePlus(question.until, -age.ms), accepted, looks }
  // Where the tag has stayed long enough, nothing else has to be looked at.
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

/** The newest assignment of a digest that is old enough; `passed` are newer rows, as far as they were read. */
async function choose(reader: Reader, repo: Repo, tag: string, aged: Aged): Promise<Choice> {
  const { until, age, cut } = aged
  const known = { countFrom: age.countFrom, cut }
  const page = await store.rowsUntil(reader, repo, tag, { until, known, most: pageRows })
  const base = await newestStay(reader, repo, tag, page, aged)
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

/** The newest assignment whose own stay counts and began early enough, of a digest that is here. */
async function newestStay(
  reader: Reader,
  repo: Repo,
  tag: string,
  page: readonly store.Row[],
  aged: Aged,
): Promise<store.Row | undefined> {
  for (const [i, row] of page.entries()) {
    if (row.since > aged.cut || row.deleted || !row.here) continue
    if (await counts(reader, repo, stayIn(tag, page, i), aged)) return row
  }
  if (page.length < pageRows) return undefined
  const { hold } = aged.age
  // A stay of this length has at least one of these moments in it.
  let moment = [aged.cut, page.at(-1)!.time].sort()[0]!
  for (let looked = 0; looked < mostMoments; looked += momentsAtOnce) {
    const moments = Array.from({ length: momentsAtOnce }, (_, i) => timePlus(moment, -i * hold))
    const stays = await store.staysAt(reader, repo, tag, moments, aged.until)
    for (const stay of stays) {
      if (stay.deletion || !stay.here || stay.since > aged.cut) continue
      if (!(await counts(reader, repo, stay, aged))) continue
      return { ...stay, time: stay.begin, deleted: false, known: true }
    }
    const oldest = stays.at(-1)
    if (!oldest) return undefined
    // What was there at the last moment may have begun long before.
    moment = [oldest.begin, timePlus(moments.at(-1)!, -hold)].sort()[0]!
  }
  return undefined
}

function stayIn(tag: string, page: readonly store.Row[], i: number): Stay {
  const [row, next] = [page[i]!, page[i - 1]]
  const end = next && { time: next.time, deleted: next.deleted, digest: next.digest }
  return { tag, digest: row.digest, begin: row.time, since: row.since, end }
}

/** Whether a stay says anything; where the looks have ended, none does. */
async function counts(
  reader: Reader,
  repo: Repo,
  stay: Stay,
  { age, looks }: Pick<Aged, 'age' | 'looks'>,
): Promise<boolean> {
  if (problemOf(stay, age.hold) !== undefined || looks.left-- <= 0) return false
  return stay.end === undefined || !(await store.hadBefore(reader, repo, stay, stay.end.digest))
}

/** The first of the candidates, the newest first, whose digest is old enough. */
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

/** Whether a digest has been this tag for long enough, or any tag of the repo where those count. */
export async function isEligible(
  reader: Reader,
  repo: Repo,
  digest: string,
  tag: string,
  { age, cut, until, looks }: Omit<Aged, 'accepted'>,
): Promise<boolean> {
  return (await firstStay(reader, repo, digest, tag, { age, began: cut, until, looks, isAny: true })) !== undefined
}

/** When the first stay of a digest that counts began, among those that began early enough; or any of them. */
async function firstStay(
  reader: Reader,
  repo: Repo,
  digest: string,
  tag: string,
  { age, began, until, looks, isAny }: { age: Age; began: string; until: string; looks: Looks; isAny: boolean },
): Promise<string | undefined> {
  const under = age.countFrom === 'tag' ? tag : undefined
  let first: string | undefined
  for (const most of [8, mostStays]) {
    if (looks.left <= 0) return first
    const stays = await store.staysOf(reader, repo, digest, { tag: under, began, until, most })
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
 * Until when what is chosen stays so unless something is written: nothing that was passed over gets old enough before. May be
 * later than that for what an upstream was seen to have long before its content came here.
 */
export async function steadyUntil(
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

/** How many assignments that were passed over are named. */
const mostSkipped = 20

/** `next` is one of `skipped`. */
export type Explanation = { skipped: Skipped[]; next: Skipped | undefined }

/** Why newer assignments are passed over, the newest first, and which of them is served next, and when. */
export async function explain(
  reader: Reader,
  repo: Repo,
  tag: string,
  question: Question,
  resolved: Resolved,
): Promise<Explanation> {
  const { age, looks = someLooks() } = question
  const until = rowsOf(question)
  const skipped: Skipped[] = []
  if (!age || !('passed' in resolved)) return { skipped, next: undefined }
  for (const [i, row] of resolved.passed.entries()) {
    if (row.deleted) continue
    if (skipped.length === mostSkipped || looks.left <= 0) break
    skipped.push(await skippedOf(reader, repo, stayIn(tag, resolved.passed, i), row, { until, age, looks }))
  }
  const [next] = skipped
    .filter(({ eligible }) => eligible !== undefined)
    .sort((a, b) => (a.eligible! < b.eligible! ? -1 : 1))
  return { skipped, next }
}

async function skippedOf(
  reader: Reader,
  repo: Repo,
  stay: Stay,
  { here }: store.Row,
  { until, age, looks }: { until: string; age: Age; looks: Looks },
): Promise<Skipped> {
  const { digest, begin: time, tag } = stay
  if (!here) return { digest, time, reason: 'gone' }
  const began = await firstStay(reader, repo, digest, tag, { age, began: until, until, looks, isAny: false })
  if (began !== undefined) return { digest, time, reason: 'young', eligible: timePlus(began, age.ms) }
  return { digest, time, reason: problemOf(stay, age.hold) ?? 'rolled back' }
}
