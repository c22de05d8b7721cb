// Imports reports of other scanners and lists them.

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
import { storeScanReport } from './stored-report.service.ts'

export type { ReportFacts } from './scan-reports.model.ts'

const unzip = promisify(gunzip)

/**
 * Content of an uploaded report. Decompresses gzip. Throws INVALID_ARGUMENT if the report is empty, too large or not valid gzip.
 */
async function contentOf(report: Uint8Array): Promise<Buffer> {
  const isPacked = report[0] === 0x1f && report[1] === 0x8b
  try {
    const content = isPacked ? await unzip(report, { maxOutputLength: maxReportBytes }) : Buffer.from(report)
    if (content.length > 0) return content
  } catch (error) {
    const isLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE'
    const description = isLarge ? `must have at most ${maxReportBytes} bytes` : 'is not valid gzip'
    throw invalid({ field: 'report', description })
  }
  throw invalid({ field: 'report', description: 'is required' })
}

/**
 * Stores a report of an image and queues it for parsing in the background. Throws RESOURCE_EXHAUSTED if too many reports of the
 * organization are queued.
 */
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
    throw tooMany(
      `the report was not imported, because the organization already has ${mostWaiting} reports in the queue; try again in a minute`,
      60,
    )
  }
  const rawDigest = await storeScanReport(call, row, content, call.url)
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

/** Lists all reports of an image, the newest first, including ignored ones. */
export async function listScanReports(call: Call, repoUid: string, digest: string): Promise<ReportFacts[]> {
  const row = await requireImage(call, repoUid, digest)
  return store.listFacts(call.app.db, row.id, digest, mostKept.read + mostKept.ignored + mostKept.stated + mostWaiting)
}

/** Filter for reports of version 1 of the API, by image and scanner. `version` filters only if it is not empty. */
export type OutsideQuery = {
  repo: string
  digest: string
  tag: string
  since: string
  scanner: number | undefined
  version: string
}

/** Lists reports of other scanners, the newest first, up to the size limits of one answer. */
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

/** Waits for free memory, and then reads the findings of the reports. */
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
  const sees = isUid(repo) && call.reach.some((scope) => isAtOrBelow(repo, scope))
  const row = sees ? await findRepoByUid(db, repo) : undefined
  if (!row) return []
  if (tag === '') return store.factsOfRepo(db, row.id, maxReports)
  const pointed = await pointsTo(db, row, tag)
  if (pointed === undefined) return []
  return (await store.listFacts(db, row.id, pointed, mostLooked)).filter(isRead)
}

/** Queries each organization separately, so that many reports of one organization do not displace those of another. */
async function factsOfDigest(call: Call, digest: string, filter: store.DigestFilter): Promise<ReportFacts[]> {
  const { db } = call.app
  if (call.reach.includes(top)) return store.factsOfDigest(db, digest, undefined, filter)
  const found: ReportFacts[] = []
  for (const [organization, all] of Map.groupBy(call.reach, rootOf)) {
    for (const scopes of chunks(all, scopesAtOnce)) {
      call.signal.throwIfAborted()
      found.push(...(await store.factsOfDigest(db, digest, { organization, scopes }, filter)))
    }
  }
  return found.sort((one, other) => other.id - one.id)
}

const isRead = ({ state }: ReportFacts): boolean => state === 'read'
const mostLooked = 2000
const scopesAtOnce = 100

/**
 * Finds the newest report of a digest by a scanner that was created at `time` or before. If `time` is empty, finds the newest
 * report.
 */
export async function findStoredReport(
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
 * Merges the newest report of each scanner on an image. Returns undefined if there is no report. Throws RESOURCE_EXHAUSTED if the
 * reports exceed the size limit of one answer.
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

/** Metadata of a report in the form of our reports, without its findings. */
export const headOf = (facts: ReportFacts): ImageReport => toImageReport({ ...facts, vulnerabilities: [] })

const tooLong = () =>
  new AppError(
    'RESOURCE_EXHAUSTED',
    'the reports of all scanners together are too long for one response; list them for one scanner',
    {
      reason: 'LIST_TOO_LONG',
    },
  )

/** Cache of the severities in reports for the lifetime of one request. */
export type OutsideKnowledge = {
  /** Severity of each vulnerability at a time, from the newest report of each tool. Undefined if there was no report. */
  at(repo: number, digest: string, time: string): Promise<OutsideCount | undefined>
}
export type OutsideCount = { createTime: string; levels: ReadonlyMap<string, number> }

/** `tooMuch` creates the error that is thrown if a request exceeds the limit on report content. */
export function createOutsideKnowledge(reader: Reader, tooMuch: () => Error): OutsideKnowledge {
  const facts = new Map<string, Promise<ReportFacts[]>>()
  const repos = new Map<number, Promise<boolean>>()
  const hasAny = (repo: number): Promise<boolean> => {
    const any = repos.get(repo) ?? store.factsOfRepo(reader, repo, 1).then(({ length }) => length > 0)
    repos.set(repo, any)
    return any
  }
  let left = mostBytes.counted
  // Only the last results are cached, because days are requested in order.
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
