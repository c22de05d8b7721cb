// Counts the vulnerabilities in the image of a tag, day by day.
import type { Call } from '#app.ts'
import type { ContentsSpan } from '#domains/registry/images/image-contents.service.ts'
import { createSizes } from '#domains/registry/images/images.service.ts'
import { contentsOverTime } from '#domains/registry/images/past-contents.service.ts'
import { type RepoNamed, reposNamed } from '#domains/registry/repos/paths.service.ts'
import { listHistory } from '#domains/registry/tags/tag-history.store.ts'
import { invalid } from '#lib/errors.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { worse } from '../findings/severity.model.ts'
import { turnsOf } from '../image-findings/image-findings.model.ts'
import {
  type CountReport,
  dayMs,
  maxCounted,
  maxDays,
  maxFindings,
  maxMoves,
  maxTags,
} from '../image-findings/reports.model.ts'
import { hasAccepted } from '../risks/accepted.service.ts'
import { createOutsideKnowledge, type OutsideKnowledge } from '../scan-reports/scan-reports.service.ts'
import { createKnowledge, type ImageKnowledge, type Knowledge, withAcceptedIn } from './image-knowledge.service.ts'
import { severitiesAt } from './report.service.ts'

export type CountQuery = { references: readonly { repo: string; tag: string }[]; from: string; to: string }

/**
 * Lists one report for each day on which the packages of the tag's image were known, the oldest day first. With `cumulative`, the
 * report of a day includes the vulnerabilities of all earlier days.
 */
export async function listCounts(call: Call, query: CountQuery, cumulative: boolean): Promise<CountReport[]> {
  const days = daysOf(call, query)
  const walk = new Walk(
    { steps: maxTags * (maxDays + 1), bytes: 1 },
    call.signal,
    (limit) => new Error(`more than ${limit}`),
  )
  const knowledge = createKnowledge(call.app, () => {
    return tooMuch(`have images with more than ${maxFindings} findings; request fewer tags or fewer days`)
  })
  const counting: Counting = {
    ...{ call, knowledge, walk, named: maxCounted, left: maxMoves, risky: new Map(), repos: new Map() },
    outside: createOutsideKnowledge(call.app.db, () =>
      tooMuch('have scanner reports with too much data; request fewer tags or fewer days'),
    ),
    accepted: new Map(),
  }
  const reports: CountReport[] = []
  for (const { repo: named, tag } of query.references) {
    const repo = await repoFor(counting, named)
    if (repo) reports.push(...(await countsOfTag(counting, { named, repo, tag }, days, cumulative)))
  }
  return reports
}

const tooMuch = (description: string) => invalid({ field: 'references', description })

/** State of one request. `named` is the number of vulnerability IDs that still fit into the answer. */
type Counting = {
  named: number
  call: Call
  knowledge: Knowledge
  outside: OutsideKnowledge
  walk: Walk
  left: number
  /** For each repository uid: true if a risk was ever accepted in the repository. */
  risky: Map<string, boolean>
  /** For each name in the request: the repository. */
  repos: Map<string, RepoNamed | undefined>
  /** Cache of the findings of images. `all` has the findings as they were read, `found` the same findings with accepted risks. */
  accepted: Map<string, { all: ImageKnowledge['found']; found: ImageKnowledge['found'] }>
}
type Day = { start: string; end: string }

/** Days in UTC from `from` to `to`. If `from` is empty, only the last day. If `to` is empty, the last day is today. */
function daysOf(call: Call, { references, from, to }: CountQuery): Day[] {
  if (from !== '' && to !== '' && to < from) throw invalid({ field: 'to', description: 'must not be before from' })
  if (references.length > maxTags)
    throw invalid({ field: 'references', description: `must have at most ${maxTags} tags` })
  const dayOf = (time: string) => Math.floor(Date.parse(time) / dayMs)
  const last = dayOf(to === '' || to > call.now ? call.now : to)
  const first = from === '' ? last : dayOf(from)
  if (last - first >= maxDays)
    throw invalid({ field: 'from', description: `must be at most ${maxDays} days before to` })
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => {
    const end = new Date((first + i + 1) * dayMs - 1).toISOString()
    return { start: new Date((first + i) * dayMs).toISOString(), end: end > call.now ? call.now : end }
  })
}

/**
 * Finds the repository with this name that the caller can see. Throws INVALID_ARGUMENT if several groups have a repository with
 * this name.
 */
async function repoFor({ call, repos }: Counting, named: string): Promise<RepoNamed | undefined> {
  if (repos.has(named)) return repos.get(named)
  const sees = ({ uid }: RepoNamed) => call.reach.some((scope) => isAtOrBelow(uid, scope))
  const found = (await reposNamed(call.app.db, named, call.reach)).filter(sees)
  if (found.length > 1) {
    throw invalid({
      field: 'repo',
      description: 'is the name of several repositories; use the path or the uid instead',
    })
  }
  repos.set(named, found[0])
  return found[0]
}

type Followed = { named: string; repo: RepoNamed; tag: string }

async function countsOfTag(
  counting: Counting,
  followed: Followed,
  days: readonly Day[],
  cumulative: boolean,
): Promise<CountReport[]> {
  const { repo, tag } = followed
  const sum = new Map<string, number>()
  const reports: CountReport[] = []
  const images = await imagesOn(counting, followed, days)
  const digests = images.map(({ digest }) => digest)
  const sizes = await createSizes(counting.call, repo, digests)
  const first = images.flatMap(({ day, spans }) => spans.find(({ fromTime }) => fromTime <= day.end) ?? [])
  await counting.knowledge.preload(first, [rootOf(repo.uid)])
  for (const held of images) {
    await counting.walk.pause()
    const { day, digest } = held
    const ours = await foundOn(counting, repo, held)
    // Our own findings take precedence over those of other scanners. Exception: an image that was not scanned completely and has
    // no findings.
    const theirs = ours?.isCertain ? undefined : await counting.outside.at(repo.id, digest, day.end)
    const levels = theirs?.levels ?? ours?.levels
    if (!levels) continue
    for (const [id, level] of levels) sum.set(id, worse(level, sum.get(id) ?? level))
    const shown = cumulative ? sum : levels
    if (shown.size === 0 && !theirs && !ours?.isCertain) continue
    counting.named -= shown.size
    if (counting.named < 0) {
      throw tooMuch(`have more than ${maxCounted} vulnerabilities on these days; request fewer tags or fewer days`)
    }
    const checked = theirs && theirs.createTime >= day.start ? theirs.createTime : day.start
    reports.push({
      repo: followed.named,
      tag,
      date: ours && !theirs ? lastCheck(ours.known, day) : checked,
      sizeBytes: await sizes.of(digest),
      ids: groupByLevel(shown),
    })
  }
  return reports
}

/** Findings of an image at the end of a day, with the risks accepted in its repository. */
async function knownOn(counting: Counting, repoUid: string, { day, digest, spans }: Held) {
  const { call, knowledge, accepted, risky } = counting
  const known = await knowledge.at(spans, [rootOf(repoUid)], day.end)
  if (!known) return undefined
  if (!risky.has(repoUid)) risky.set(repoUid, await hasAccepted(call.app.db, repoUid))
  if (!risky.get(repoUid)) return known
  const key = `${repoUid} ${digest}`
  const before = accepted.get(key)
  if (before?.all === known.found) return { ...known, found: before.found }
  const { found } = await withAcceptedIn(call.app.db, known, [{ repoUid, digest }])
  accepted.set(key, { all: known.found, found })
  return { ...known, found }
}

type Held = { day: Day; digest: string; spans: readonly ContentsSpan[] }

/**
 * Our own findings at the end of a day. Returns undefined if the image was not scanned yet. `isCertain` is false if the result is
 * empty and the image has coverage gaps.
 */
async function foundOn(counting: Counting, repo: RepoNamed, held: Held) {
  const { day } = held
  const known = await knownOn(counting, repo.uid, held)
  if (!known) return undefined
  const levels = severitiesAt(known, day.end)
  return { known, levels, isCertain: levels.size > 0 || known.gapsAt(day.end).length === 0 }
}

/** For each day, the image that the tag pointed to at the end of the day, with its known contents. */
async function imagesOn(counting: Counting, { repo, tag }: Followed, days: readonly Day[]) {
  const { db } = counting.call.app
  const [first, last] = [days[0], days.at(-1)]
  if (!first || !last) return []
  const before = new Date(Date.parse(last.end) + 1).toISOString()
  const within = await listHistory(db, repo.ledger, tag, { from: first.start, before }, counting.left + 1)
  counting.left -= within.length
  if (counting.left < 0) {
    throw invalid({
      field: 'references',
      description: `have more than ${maxMoves} tag updates on these days; request fewer tags or fewer days`,
    })
  }
  const history = [...within, ...(await listHistory(db, repo.ledger, tag, { before: first.start }, 1))]
  const digests = history.map(({ digest }) => digest)
  const contents = await contentsOverTime(db, repo.id, digests)
  return days.flatMap((day): Held[] => {
    const at = history.find(({ time }) => time <= day.end)
    if (!at || at.event === 'deleted' || at.digest === '') return []
    return [{ day, digest: at.digest, spans: contents.get(at.digest) ?? [] }]
  })
}

/** Time of the last scan on a day, or of the last change of its result. */
function lastCheck({ found, from, readsAt }: ImageKnowledge, { start, end }: Day): string {
  let last = start
  const look = (time: string): void => {
    if (time > last && time <= end) last = time
  }
  look(from)
  for (const { fetchTime } of readsAt(end)) look(fetchTime)
  for (const one of found) {
    look(one.foundTime)
    look(one.goneTime)
    const isPlain = one.record.past.length + one.suppressed.length + one.accepted.length === 0
    if (!isPlain) for (const time of turnsOf(one)) look(time)
  }
  return last
}

function groupByLevel(levels: ReadonlyMap<string, number>): Map<number, string[]> {
  const ids = new Map<number, string[]>()
  for (const id of [...levels.keys()].sort()) {
    const level = levels.get(id)!
    ids.set(level, [...(ids.get(level) ?? []), id])
  }
  return ids
}
