// The reports of images that a caller may see.
import type { Call } from '#app.ts'
import {
  type ContentsRecord,
  contentsEverywhere,
  contentsOf,
  knownImages,
} from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { pointsTo } from '#domains/registry/tags/tag-history.service.ts'
import { isDigest } from '#lib/digest.ts'
import { invalid, notFound } from '#lib/errors.ts'
import { isAtOrBelow, isUid, rootOf } from '#lib/uid.ts'
import { Walk } from '#lib/walk.ts'
import { createKnowledge, type ImageKnowledge } from './image-knowledge.service.ts'
import { reportAt, toldChangesOf } from './report.service.ts'
import { type ImageReport, maxReports, maxVulnerabilities, vulnReportType } from './reports.model.ts'

export { type ImageReport, type ReportedVulnerability, vulnReportType } from './reports.model.ts'

/** Which images: a digest wherever the caller sees it, or what a repo has, or what one of its tags points to. */
export type ReportQuery = { repo: string; digest: string; tag: string; since: string }

const maxRepos = 200
const walkLimits = { steps: 10_000, bytes: 512 * 2 ** 20 }

/** One report for each change of what was known of an image, the newest first; no more than an answer has room for. */
export async function listReports(call: Call, query: ReportQuery): Promise<ImageReport[]> {
  const images = await imagesFor(call, query)
  const now = call.now
  const dated = images.flatMap(({ digest, knowledge }) => {
    return toldChangesOf(knowledge, now).map((time) => ({ digest, knowledge, time }))
  })
  const wanted = dated
    .filter(({ time }) => query.since === '' || time > query.since)
    .sort((a, b) => (a.time === b.time ? (a.digest < b.digest ? -1 : 1) : a.time > b.time ? -1 : 1))
    .slice(0, maxReports)
  const walk = new Walk(walkLimits, call.signal, (limit) => new Error(`more than ${limit}`))
  const reports: ImageReport[] = []
  let left = maxVulnerabilities
  for (const { digest, knowledge, time } of wanted) {
    await walk.pause()
    const report = reportAt(knowledge, digest, time)
    left -= report.vulnerabilities.length
    if (left < 0 && reports.length > 0) break
    reports.push(report)
  }
  return reports
}

/** The report of a digest that was made at a time, else the newest of before; the newest of all without a time. */
export async function findReport(call: Call, digest: string, createTime: string): Promise<ImageReport> {
  const [image] = await imagesFor(call, { repo: '', digest, tag: '', since: '' })
  const changes = image ? toldChangesOf(image.knowledge, call.now) : []
  const time = createTime === '' ? changes[0] : changes.find((one) => one <= createTime)
  if (!image || time === undefined) throw notFound(vulnReportType, digest)
  return reportAt(image.knowledge, digest, time)
}

/** The newest report of an image of a repo, for those who may see it there; undefined when there is none. */
export async function newestReport(call: Call, repoUid: string, digest: string): Promise<ImageReport | undefined> {
  const repo = await findRepoByUid(call.app.db, repoUid)
  const [contents] = repo ? await contentsOf(call.app.db, repo.id, [digest]) : []
  if (contents?.state !== 'known') return undefined
  const knowledge = await createKnowledge(call.app).of(contents, [rootOf(repoUid)])
  const time = knowledge && toldChangesOf(knowledge, call.now)[0]
  return knowledge && time !== undefined ? reportAt(knowledge, digest, time) : undefined
}

type KnownImage = { digest: string; knowledge: ImageKnowledge }

async function imagesFor(call: Call, query: ReportQuery): Promise<KnownImage[]> {
  const knowledge = createKnowledge(call.app)
  const found: KnownImage[] = []
  for (const { contents, places } of await contentsFor(call, query)) {
    call.signal.throwIfAborted()
    const known = contents.state === 'known' ? await knowledge.of(contents, places) : undefined
    if (known) found.push({ digest: contents.digest, knowledge: known })
  }
  return found
}

type Placed = { contents: ContentsRecord; places: string[] }

async function contentsFor(call: Call, { repo, digest, tag }: ReportQuery): Promise<Placed[]> {
  const { db } = call.app
  const sees = (uid: string) => call.reach.some((place) => isAtOrBelow(uid, place))
  if (digest !== '') {
    if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
    const everywhere = (await contentsEverywhere(db, digest, maxRepos)).filter(({ repoUid }) => sees(repoUid))
    const [contents] = everywhere
    return contents ? [{ contents, places: [...new Set(everywhere.map(({ repoUid }) => rootOf(repoUid)))].sort() }] : []
  }
  if (repo === '') throw invalid({ field: 'repo_id', description: 'is required unless digest is given' })
  if (!isUid(repo)) throw invalid({ field: 'repo_id', description: 'is not a uid' })
  const row = sees(repo) ? await findRepoByUid(db, repo) : undefined
  if (!row) return []
  const digests = tag === '' ? await knownImages(db, row.id, maxRepos) : [await pointsTo(db, row, tag)]
  const contents = await contentsOf(
    db,
    row.id,
    digests.filter((one) => one !== undefined),
  )
  return contents.map((one) => ({ contents: one, places: [rootOf(repo)] }))
}
