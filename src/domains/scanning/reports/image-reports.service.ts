// Reports of the images that a caller can see.
import type { Call } from '#app.ts'
import { type ContentsSpan, knownImages } from '#domains/registry/images/image-contents.service.ts'
import { contentsEverywhere, contentsOverTime } from '#domains/registry/images/past-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { pointsTo } from '#domains/registry/tags/tag-history.service.ts'
import { isDigest, sha256Pattern } from '#lib/digest.ts'
import { AppError, found, invalid, notFound } from '#lib/errors.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { isAtOrBelow, isUid, rootOf } from '#lib/uid.ts'
import {
  type ImageReport,
  lengthOf,
  maxFindings,
  maxRaw,
  maxReports,
  maxVulnerabilities,
  packagesLength,
  vulnReportType,
} from '../image-findings/reports.model.ts'
import { newestOutside } from '../scan-reports/scan-reports.service.ts'
import { createKnowledge, type ImageKnowledge, type Knowledge, withAcceptedIn } from './image-knowledge.service.ts'
import { lastLookAt, publishedChangesOf, reportAt, wasPublished } from './report.service.ts'

/**
 * Filter for reports: a digest in all repositories that the caller can see, the images of a repository, or the image of a tag.
 */
export type ReportQuery = { repo: string; digest: string; tag: string; since: string }

const maxRepos = 200
const walkLimits = { steps: 10_000, bytes: 512 * 2 ** 20 }

/**
 * Lists the reports of images, one for each change of an image's result, the newest first. The list ends at the size limits of an
 * answer.
 */
export async function listReports(call: Call, query: ReportQuery): Promise<ImageReport[]> {
  const dated = (await imagesFor(call, query)).flatMap(({ digest, told }) => told.map((one) => ({ digest, ...one })))
  const wanted = dated
    .filter(({ time }) => query.since === '' || time > query.since)
    .sort((a, b) => (a.time === b.time ? (a.digest < b.digest ? -1 : 1) : a.time > b.time ? -1 : 1))
    .slice(0, maxReports)
  const walk = new Walk(walkLimits, call.signal, (limit) => new Error(`more than ${limit}`))
  const reports: ImageReport[] = []
  const room = createAnswerLimits()
  for (const { digest, knowledge, time } of wanted) {
    await walk.pause()
    const report = reportAt(knowledge, digest, time)
    if (!room.takes(report)) break
    reports.push(report)
  }
  return reports
}

/**
 * Size limits of an answer with reports. `takes` returns false for the first report that does not fit. Throws RESOURCE_EXHAUSTED
 * if the newest report alone is too long.
 */
export function createAnswerLimits(): { takes(report: ImageReport): boolean } {
  let [vulnerabilities, characters, reports] = [maxVulnerabilities, maxRaw, maxReports]
  return {
    takes(report) {
      const isFirst = reports === maxReports
      reports--
      vulnerabilities -= report.vulnerabilities.length
      for (const one of report.vulnerabilities) characters -= lengthOf(one) + packagesLength(one)
      if (isFirst && characters < 0) throw tooLong(report.digest)
      return isFirst || Math.min(vulnerabilities, characters, reports) >= 0
    },
  }
}

const tooLong = (digest: string) =>
  new AppError(
    'RESOURCE_EXHAUSTED',
    `the newest report of ${digest} has more than ${maxRaw} characters; request the reports of another image`,
    {
      reason: 'LIST_TOO_LONG',
    },
  )

/** Key of a report: the digest, the time, and the numbers of the repositories in which the caller can see the image. */
export type ReportKey = { digest: string; time: string; repos: readonly number[] }

/**
 * Finds the report of a digest with the given time, or the newest report before that time. Without a time, finds the newest
 * report. Throws NOT_FOUND if there is no such report.
 */
export async function findReport(
  call: Call,
  digest: string,
  createTime: string,
): Promise<{ report: ImageReport; key: ReportKey }> {
  const query = { repo: '', digest, tag: '', since: '' }
  requireDigest(digest)
  const content = await findContent(call, digest, seenBy(call))
  const report = content && reportOf(await imageOf(call, knowledgeFor(call, query), content), createTime)
  if (!report) throw notFound(vulnReportType, digest)
  return { report, key: { digest, time: report.createTime, repos: content.numbers } }
}

/**
 * Builds the report of a key again, with the names of its repositories. Returns undefined if one of these repositories no longer
 * has the image.
 */
export async function reportAgain(
  asking: Asking,
  { digest, time, repos }: ReportKey,
): Promise<{ report: ImageReport; repos: readonly string[] } | undefined> {
  const wanted = new Set(repos)
  const content = await findContent(asking, digest, (_, repo) => wanted.has(repo))
  if (content?.numbers.length !== wanted.size) return undefined
  const query = { repo: '', digest, tag: '', since: '' }
  const report = reportOf(await imageOf(asking, knowledgeFor(asking, query), content), time)
  return report && { report, repos: content.repos }
}

function reportOf({ digest, phases, told }: KnownImage, createTime: string): ImageReport | undefined {
  // A request with an exact time also finds a report between the first and the last change of an import.
  const exact = phases.find(({ from, until, knowledge }) => {
    return from <= createTime && (until === '' || createTime < until) && wasPublished(knowledge, createTime)
  })
  if (exact) return reportAt(exact.knowledge, digest, createTime)
  const one = createTime === '' ? told[0] : told.find(({ time }) => time <= createTime)
  return one && reportAt(one.knowledge, digest, one.time)
}

/** Newest report of an image in a repository. Returns undefined if there is none. The caller must check the permission. */
async function newestReport(call: Call, repoUid: string, digest: string): Promise<ImageReport | undefined> {
  const repo = await findRepoByUid(call.app.db, repoUid)
  const spans = repo ? (await contentsOverTime(call.app.db, repo.id, [digest])).get(digest) : undefined
  if (spans?.[0]?.state !== 'known') return undefined
  const { told } = await imageOf(call, createKnowledge(call.app, tooMuchOfDigest), { digest, spans, repos: [repoUid] })
  const [newest] = told
  if (!newest) return undefined
  const report = reportAt(newest.knowledge, digest, newest.time)
  return { ...report, lastSeen: lastLookAt(newest.knowledge, call.now) ?? report.lastSeen }
}

const tooMuchOfDigest = () =>
  invalid({
    field: 'digest',
    description: `has more than ${maxFindings} findings, including earlier ones, which is too many for one response`,
  })

/** Result of an image for the time in which its known contents stayed the same. `until` is empty for the current contents. */
type Phase = { knowledge: ImageKnowledge; from: string; until: string }
/** An image with its results. `told` has the times of its reports, the newest first. */
type KnownImage = { digest: string; phases: Phase[]; told: { knowledge: ImageKnowledge; time: string }[] }

async function imageOf(call: Asking, knowledge: Knowledge, { digest, spans, repos }: Scoped): Promise<KnownImage> {
  const organizations = [...new Set(repos.map(rootOf))].sort()
  const images = repos.map((repoUid) => ({ repoUid, digest }))
  const phases: Phase[] = []
  let until = ''
  for (const span of spans) {
    const all = span.state === 'known' ? await knowledge.of(span, organizations) : undefined
    const known = all && (await withAcceptedIn(call.app.db, all, images))
    if (known && (until === '' || known.from < until)) phases.push({ knowledge: known, from: known.from, until })
    // New contents have no result until their comparison. Until then, the result of the previous contents is used.
    const began = known?.from ?? (span.state === 'known' ? until : span.fromTime)
    if (began !== '' && (until === '' || began < until)) until = began
  }
  const told = phases.flatMap((phase) => {
    const times = publishedChangesOf(phase.knowledge, call.now)
    return times.flatMap((time) =>
      phase.until === '' || time < phase.until ? [{ knowledge: phase.knowledge, time }] : [],
    )
  })
  return { digest, phases, told }
}

/** Cache of scan results. Reading throws INVALID_ARGUMENT if the images have too many findings. */
function knowledgeFor({ app }: Asking, { digest }: ReportQuery): Knowledge {
  const field = digest === '' ? 'repo_id' : 'digest'
  const description =
    digest === ''
      ? `has images with more than ${maxFindings} findings; set a tag or a digest`
      : `names an image with more than ${maxFindings} findings, including past ones`
  return createKnowledge(app, () => invalid({ field, description }))
}

async function imagesFor(call: Call, query: ReportQuery): Promise<KnownImage[]> {
  const knowledge = knowledgeFor(call, query)
  const found: KnownImage[] = []
  for (const content of await contentsFor(call, query)) {
    call.signal.throwIfAborted()
    found.push(await imageOf(call, knowledge, content))
  }
  return found
}

type Scoped = { digest: string; spans: readonly ContentsSpan[]; repos: string[] }
/** `numbers` has the numbers of the repositories. */
type ContentInRepos = Scoped & { numbers: number[] }
type Asking = Pick<Call, 'app' | 'now'>

async function contentsFor(call: Call, { repo, digest, tag }: ReportQuery): Promise<Scoped[]> {
  const { db } = call.app
  const sees = seenBy(call)
  if (digest !== '') {
    requireDigest(digest)
    const content = await findContent(call, digest, sees)
    return content ? [content] : []
  }
  if (repo === '') throw invalid({ field: 'repo_id', description: 'is required if digest is empty' })
  if (!isUid(repo)) throw invalid({ field: 'repo_id', description: 'is not a uid' })
  const row = sees(repo) ? await findRepoByUid(db, repo) : undefined
  if (!row) return []
  const digests = tag === '' ? await knownImages(db, row.id, maxRepos) : [await pointsTo(db, row, tag)]
  const wanted = digests.filter((one) => one !== undefined)
  const contents = await contentsOverTime(db, row.id, wanted)
  return [...contents].map(([one, spans]) => ({ digest: one, spans, repos: [repo] }))
}

function requireDigest(digest: string): void {
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
}

const seenBy =
  ({ reach }: Call) =>
  (uid: string): boolean =>
    reach.some((scope) => isAtOrBelow(uid, scope))

async function findContent(
  { app: { db } }: Asking,
  digest: string,
  sees: (uid: string, repo: number) => boolean,
): Promise<ContentInRepos | undefined> {
  const everywhere = await contentsEverywhere(db, digest, { sees, most: maxRepos })
  const [first] = everywhere
  const spans = first && (await contentsOverTime(db, first.repo, [digest])).get(digest)
  if (!spans) return undefined
  return {
    ...{ digest, spans, repos: everywhere.map(({ repoUid }) => repoUid) },
    numbers: everywhere.map(({ repo }) => Number(repo)),
  }
}

/**
 * Newest report of an image. If we have no report of the image, merges the reports of other scanners. Throws NOT_FOUND if there
 * is no report, and RESOURCE_EXHAUSTED if the report is too long.
 */
export async function getVulnReport(call: Call, repo: string, digest: string): Promise<ImageReport> {
  if (!sha256Pattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
  }
  const report = (await newestReport(call, repo, digest)) ?? (await newestOutside(call, repo, digest))
  const { vulnerabilities } = found(report, vulnReportType, digest)
  // The older report format repeats a vulnerability for each package that has it.
  const length = vulnerabilities.reduce(
    (sum, one) => sum + lengthOf(one) * one.packages.length + packagesLength(one),
    0,
  )
  if (length <= maxRaw) return found(report, vulnReportType, digest)
  const message = `the report has more than ${maxRaw} characters; use ListVulnReports, which lists each vulnerability once`
  throw new AppError('RESOURCE_EXHAUSTED', message, { reason: 'LIST_TOO_LONG' })
}
