// Reports of other scanners: handing one in, what became of them, and where they are asked for.
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { atRepo, findBlob, readBlob } from '#domains/registry/blobs/blobs.service.ts'
import { keepBlob } from '#domains/registry/blobs/uploads.service.ts'
import { isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid, pathIn, type RepoNamed } from '#domains/registry/repos/paths.service.ts'
import { pointsTo } from '#domains/registry/tags/tag-history.service.ts'
import { digestOf, isDigest } from '#lib/digest.ts'
import { found, invalid, notFound, tooMany } from '#lib/errors.ts'
import { isAtOrBelow, isUid, parentOf, rootOf } from '#lib/uid.ts'
import { type ImageReport, maxReports, maxVulnerabilities, vulnReportType } from '../reports/reports.model.ts'
import {
  maxReportBytes,
  mostKept,
  mostWaiting,
  type ReportFacts,
  type StoredReport,
  toImageReport,
} from './scan-reports.model.ts'
import * as store from './scan-reports.store.ts'

export type { ReportFacts } from './scan-reports.model.ts'

const unzip = promisify(gunzip)

/** The report, which may be compressed. Throws INVALID_ARGUMENT when it is empty, too large or not what it says. */
async function contentOf(report: Uint8Array): Promise<Buffer> {
  const isPacked = report[0] === 0x1f && report[1] === 0x8b
  try {
    const content = isPacked ? await unzip(report, { maxOutputLength: maxReportBytes }) : Buffer.from(report)
    if (content.length > 0) return content
  } catch (error) {
    const isLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    const description = isLarge ? `must have at most ${maxReportBytes} bytes` : 'is not compressed with gzip'
    throw invalid({ field: 'report', description })
  }
  throw invalid({ field: 'report', description: 'is required' })
}

/** Takes in a report of an image of the repo, to be read in the background. */
export async function importReport(
  call: Call,
  repoUid: string,
  digest: string,
  given: Uint8Array,
): Promise<ReportFacts> {
  const { db } = call.app
  const row = await requireImage(call, repoUid, digest)
  const content = await contentOf(given)
  const rawDigest = digestOf('sha256', content)
  const repo = { ...row, group: parentOf(repoUid), path: await pathIn(db, parentOf(repoUid), row.name) }
  const organization = rootOf(repoUid)
  if ((await store.countWaiting(db, organization, mostWaiting)) >= mostWaiting) {
    throw tooMany(`${mostWaiting} reports of the organisation wait to be read`, 60)
  }
  const part = await call.app.blobs.begin(content.length)
  try {
    await part.write([content])
  } catch (error) {
    await part.discard()
    throw error
  }
  const origin = { host: new URL(call.url).host, subdomain: '', repository: repo.path }
  const kept = await keepBlob(call, atRepo(db, repo), { digest: rawDigest, size: content.length, part }, origin)
  const about = { repo, digest, origin: 'imported' as const, referrer: '', rawDigest, actor: call.caller.uid }
  const id = kept
    ? await db.tx(async (tx) => {
        if (!(await findRepoByUid(tx, repoUid))) return undefined
        return store.insertReport(tx, about, undefined, call.now)
      })
    : undefined
  if (id === undefined) throw notFound('registry.pinfold.dev/Repo', repoUid)
  call.app.scanning.reported.notify()
  return found(await store.findFacts(db, id), vulnReportType, String(id))
}

async function requireImage(call: Call, repoUid: string, digest: string): Promise<RepoNamed> {
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const row = found(await findRepoByUid(call.app.db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  if (await isKnownImage(call.app.db, row.id, digest)) return row
  throw notFound('registry.pinfold.dev/Image', digest)
}

/** All that came of an image, the newest first, those that count for nothing too. */
export async function listScanReports(call: Call, repoUid: string, digest: string): Promise<ReportFacts[]> {
  const row = await requireImage(call, repoUid, digest)
  return store.listFacts(call.app.db, row.id, digest, mostKept.read + mostKept.ignored + mostWaiting)
}

/** Which images, as version 1 asks for them, and of which scanner: by its number, and by its version where that is not empty. */
export type OutsideQuery = {
  repo: string
  digest: string
  tag: string
  since: string
  scanner: number | undefined
  version: string
}

/** Reports of other scanners, the newest first; no more than an answer has room for. */
export async function listOutside(call: Call, query: OutsideQuery): Promise<ImageReport[]> {
  const { scanner, version, since } = query
  const facts = (await factsFor(call, query)).filter((one) => {
    return (scanner === undefined || one.scanner === scanner) && one.createTime > since
  })
  const reports: ImageReport[] = []
  let left = maxVulnerabilities
  for (const { id, total } of facts.slice(0, maxReports)) {
    call.signal.throwIfAborted()
    left -= total
    if (left < 0 && reports.length > 0) break
    const report = await store.findReport(call.app.db, id)
    const image = report && toImageReport(report)
    if (image && (version === '' || image.scanner?.version === version)) reports.push(image)
  }
  return reports
}

async function factsFor(call: Call, { repo, digest, tag }: OutsideQuery): Promise<ReportFacts[]> {
  const { db } = call.app
  const sees = (uid: string) => call.reach.some((place) => isAtOrBelow(uid, place))
  if (digest !== '') {
    const everywhere = await store.factsOfDigest(db, digest, mostLooked)
    return everywhere.filter(({ repoUid }) => sees(repoUid))
  }
  const row = isUid(repo) && sees(repo) ? await findRepoByUid(db, repo) : undefined
  if (!row) return []
  if (tag === '') return store.factsOfRepo(db, row.id, maxReports)
  const pointed = await pointsTo(db, row, tag)
  if (pointed === undefined) return []
  return (await store.listFacts(db, row.id, pointed, mostLooked)).filter(({ state }) => state === 'read')
}

const mostLooked = 2000

/** One as it was handed in: that of a time, else the newest of before; the newest of all without a time. */
export async function findRaw(
  call: Call,
  digest: string,
  scanner: number,
  time: string,
): Promise<{ report: ImageReport; raw: string } | undefined> {
  const { db } = call.app
  const all = await factsFor(call, { repo: '', digest, tag: '', since: '', scanner, version: '' })
  const facts = all.find((one) => one.scanner === scanner && (time === '' || one.createTime <= time))
  if (!facts) return undefined
  const blob = await findBlob(call, { id: facts.repo }, facts.rawDigest)
  const bytes = blob && (await readBlob(call, { id: facts.repo }, blob, maxReportBytes))
  const report = await store.findReport(db, facts.id)
  return bytes && report && { report: toImageReport(report), raw: bytes.toString() }
}

/** The newest report that another scanner has of an image of a repo; undefined when there is none. */
export async function newestOutside(call: Call, repoUid: string, digest: string): Promise<ImageReport | undefined> {
  const repo = await findRepoByUid(call.app.db, repoUid)
  const report = repo && (await store.newestBefore(call.app.db, repo.id, digest, call.now))
  return report && toImageReport(report)
}

/** Lives as long as a request and remembers what it has read. */
export type OutsideKnowledge = {
  /** How bad each vulnerability is by the newest report that there was at a moment; undefined when there was none. */
  at(repo: number, digest: string, time: string): Promise<OutsideCount | undefined>
}
export type OutsideCount = { createTime: string; levels: ReadonlyMap<string, number> }

export function createOutsideKnowledge(reader: Reader): OutsideKnowledge {
  const facts = new Map<string, Promise<ReportFacts[]>>()
  const levels = new Map<number, Promise<OutsideCount['levels']>>()
  const levelsOf = async (id: number) => levelsIn(await store.findReport(reader, id))
  return {
    async at(repo, digest, time) {
      const key = `${repo} ${digest}`
      const all = facts.get(key) ?? store.listFacts(reader, repo, digest, mostLooked)
      facts.set(key, all)
      const one = (await all).find(({ state, createTime }) => state === 'read' && createTime <= time)
      if (!one) return undefined
      const known = levels.get(one.id) ?? levelsOf(one.id)
      levels.set(one.id, known)
      return { createTime: one.createTime, levels: await known }
    },
  }
}

const levelsIn = (report: StoredReport | undefined): ReadonlyMap<string, number> =>
  new Map(report?.vulnerabilities.map(({ id, severity }) => [id, severity]))
