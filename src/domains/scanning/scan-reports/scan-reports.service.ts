// Reports of other scanners: handing one in, what became of them, and where they are asked for.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid, type RepoNamed } from '#domains/registry/repos/paths.service.ts'
import { pointsTo } from '#domains/registry/tags/tag-history.service.ts'
import { chunks } from '#lib/chunks.ts'
import { isDigest } from '#lib/digest.ts'
import { AppError, found, invalid, notFound, tooMany } from '#lib/errors.ts'
import { isAtOrBelow, isUid, rootOf, top } from '#lib/uid.ts'
import { worse } from '../findings/severity.model.ts'
import { type ImageReport, maxReports, maxVulnerabilities, vulnReportType } from '../image-findings/reports.model.ts'
import { keepReport } from './kept-report.service.ts'
import { holdForCall } from './report-memory.service.ts'
import {
  joinReports,
  maxReportBytes,
  mostBytes,
  mostKept,
  mostWaiting,
  newestOfEach,
  type ReportFacts,
  toImageReport,
  versionOf,
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
  const organization = rootOf(repoUid)
  if ((await store.countWaiting(db, organization, mostWaiting)) >= mostWaiting) {
    throw tooMany(`${mostWaiting} reports of the organisation wait to be read`, 60)
  }
  const rawDigest = await keepReport(call, row, content, call.url)
  const id =
    rawDigest === undefined
      ? undefined
      : await db.tx(async (tx) => {
          const repo = await findRepoByUid(tx, repoUid)
          const about = { digest, origin: 'imported' as const, referrer: '', rawDigest, actor: call.caller.uid }
          return repo && store.insertReport(tx, { ...about, repo }, undefined, call.now)
        })
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
  return store.listFacts(call.app.db, row.id, digest, mostKept.read + mostKept.ignored + mostKept.stated + mostWaiting)
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
    const isMeant = scanner === undefined || one.scanner === scanner
    return isMeant && one.createTime > since && (version === '' || versionOf(one) === version)
  })
  const wanted: ReportFacts[] = []
  const left = { vulnerabilities: maxVulnerabilities, bytes: mostBytes.listed }
  for (const one of facts.slice(0, maxReports)) {
    left.vulnerabilities -= one.total
    left.bytes -= one.size
    if (Math.min(left.vulnerabilities, left.bytes) < 0 && wanted.length > 0) break
    wanted.push(one)
  }
  return readAll(call, wanted)
}

/** What they say, once there is room for it. */
async function readAll(call: Call, wanted: readonly ReportFacts[]): Promise<ImageReport[]> {
  await holdForCall(
    call,
    wanted.reduce((sum, { size }) => sum + size, 0),
  )
  const reports: ImageReport[] = []
  for (const { id } of wanted) {
    call.signal.throwIfAborted()
    const report = await store.findReport(call.app.db, id)
    if (report) reports.push(toImageReport(report))
  }
  return reports
}

async function factsFor(call: Call, { repo, digest, tag, since, scanner }: OutsideQuery): Promise<ReportFacts[]> {
  const { db } = call.app
  if (digest !== '') return factsOfDigest(call, digest, { since, scanner, until: undefined, most: mostLooked })
  const sees = isUid(repo) && call.reach.some((place) => isAtOrBelow(repo, place))
  const row = sees ? await findRepoByUid(db, repo) : undefined
  if (!row) return []
  if (tag === '') return store.factsOfRepo(db, row.id, maxReports)
  const pointed = await pointsTo(db, row, tag)
  if (pointed === undefined) return []
  return (await store.listFacts(db, row.id, pointed, mostLooked)).filter(isRead)
}

/** Organisation by organisation, so that what one has handed in hides nothing of another. */
async function factsOfDigest(call: Call, digest: string, filter: store.DigestFilter): Promise<ReportFacts[]> {
  const { db } = call.app
  if (call.reach.includes(top)) return store.factsOfDigest(db, digest, undefined, filter)
  const found: ReportFacts[] = []
  for (const [organization, all] of Map.groupBy(call.reach, rootOf)) {
    for (const places of chunks(all, placesAtOnce)) {
      call.signal.throwIfAborted()
      found.push(...(await store.factsOfDigest(db, digest, { organization, places }, filter)))
    }
  }
  return found.sort((one, other) => other.id - one.id)
}

const isRead = ({ state }: ReportFacts): boolean => state === 'read'
const mostLooked = 2000
const placesAtOnce = 100

/** Which report was handed in: that of a time, else the newest of before; the newest of all without a time. */
export async function findKept(
  call: Call,
  digest: string,
  scanner: number,
  time: string,
): Promise<ReportFacts | undefined> {
  const until = time === '' ? undefined : time
  const [facts] = await factsOfDigest(call, digest, { scanner, since: '', until, most: 1 })
  return facts
}

/**
 * What other scanners have said last of an image of a repo, each tool for itself; undefined when there is none. Throws
 * RESOURCE_EXHAUSTED where that is more than one answer has room for.
 */
export async function newestOutside(call: Call, repoUid: string, digest: string): Promise<ImageReport | undefined> {
  const { db } = call.app
  const repo = await findRepoByUid(db, repoUid)
  const facts = repo ? (await store.listFacts(db, repo.id, digest, mostLooked)).filter(isRead) : []
  const wanted = newestOfEach(facts)
  const bytes = wanted.reduce((sum, { size }) => sum + size, 0)
  if (bytes > mostBytes.listed && wanted.length > 1) throw tooLong()
  const [newest, ...others] = await readAll(call, wanted)
  return newest && joinReports([newest, ...others])
}

/** What is known of one without reading what it says. */
export const headOf = (facts: ReportFacts): ImageReport => toImageReport({ ...facts, vulnerabilities: [] })

const tooLong = () =>
  new AppError('RESOURCE_EXHAUSTED', 'the reports of all scanners together are too long; list them for one scanner', {
    reason: 'LIST_TOO_LONG',
  })

/** Lives as long as a request and remembers what it has read. */
export type OutsideKnowledge = {
  /** How bad each vulnerability is by the newest report of each tool that there was at a moment; undefined when there was none. */
  at(repo: number, digest: string, time: string): Promise<OutsideCount | undefined>
}
export type OutsideCount = { createTime: string; levels: ReadonlyMap<string, number> }

/** `tooMuch` makes the error of a question about more than is looked at. */
export function createOutsideKnowledge(reader: Reader, tooMuch: () => Error): OutsideKnowledge {
  const facts = new Map<string, Promise<ReportFacts[]>>()
  const repos = new Map<number, Promise<boolean>>()
  const hasAny = (repo: number): Promise<boolean> => {
    const any = repos.get(repo) ?? store.factsOfRepo(reader, repo, 1).then(({ length }) => length > 0)
    repos.set(repo, any)
    return any
  }
  let left = mostBytes.counted
  // What was asked for last, since days are asked for in their order.
  let parts = new Map<number, OutsideCount['levels']>()
  let last: { ids: string; count: OutsideCount } | undefined
  const levelsOf = async (id: number): Promise<OutsideCount['levels']> => {
    const before = parts.get(id)
    if (before) return before
    const found = await store.findLevels(reader, id)
    left -= found.size
    if (left < 0) throw tooMuch()
    return found.levels
  }
  return {
    async at(repo, digest, time) {
      if (!(await hasAny(repo))) return undefined
      const key = `${repo} ${digest}`
      const all = facts.get(key) ?? store.listFacts(reader, repo, digest, mostLooked)
      facts.set(key, all)
      const those = newestOfEach((await all).filter((one) => isRead(one) && one.createTime <= time))
      const ids = those.map(({ id }) => id).join(' ')
      if (those.length === 0 || last?.ids === ids) return those.length === 0 ? undefined : last?.count
      const now: typeof parts = new Map()
      const levels = new Map<string, number>()
      for (const { id } of those) {
        now.set(id, await levelsOf(id))
        for (const [name, level] of now.get(id)!) levels.set(name, worse(level, levels.get(name) ?? level))
      }
      parts = now
      last = { ids, count: { createTime: those[0]!.createTime, levels } }
      return last.count
    },
  }
}
