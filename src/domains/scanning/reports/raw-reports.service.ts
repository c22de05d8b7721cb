// Raw reports. A short report is part of the answer. A long report has a link that expires after 5 minutes. The link contains an
// encrypted ticket that names the report. Each server of the database can serve the link, and nobody can forge a ticket.
import { hash } from 'node:crypto'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Call, Work } from '#app.ts'
import { findBlob, openBlob, readBlob } from '#domains/registry/blobs/blobs.service.ts'
import { AppError, found, notFound, permissionDenied } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import {
  type ImageReport,
  lengthOf,
  maxRaw,
  maxVulnerabilities,
  packagesLength,
  vulnReportType,
} from '../image-findings/reports.model.ts'
import type { ReportFacts } from '../scan-reports/scan-reports.model.ts'
import { findStoredReport, headOf } from '../scan-reports/scan-reports.service.ts'
import { toCycloneDx } from './cyclone-dx.service.ts'
import { findReport, type ReportKey, reportAgain } from './image-reports.service.ts'

const purpose = 'report-link'
const mostInline = 2 ** 20
const linkMs = 5 * 60_000

/** A raw report. If the report is too long for an answer, `text` is empty and `ticket` opens the report. */
export type RawReport = { report: Omit<ImageReport, 'vulnerabilities'>; text: string; ticket: string }

/** `ours` includes our own report in the search. `scanner` is the number of an external scanner. */
export type RawQuery = { digest: string; ours: boolean; scanner: number; time: string }

/** Finds a raw report. Throws NOT_FOUND if there is none, and RESOURCE_EXHAUSTED if the report exceeds the length limit. */
export async function findRaw(call: Call, { digest, ours, scanner, time }: RawQuery): Promise<RawReport> {
  const own = ours ? await findReport(call, digest, time).catch(unlessMissing) : undefined
  if (own) return rawOfOwn(call, own)
  const facts = found(await findStoredReport(call, digest, scanner, time), vulnReportType, digest)
  return found(await rawOfStored(call, facts), vulnReportType, digest)
}

function unlessMissing(error: unknown): undefined {
  if (error instanceof AppError && error.code === 'NOT_FOUND') return undefined
  throw error
}

async function rawOfOwn(call: Call, { report, key }: { report: ImageReport; key: ReportKey }): Promise<RawReport> {
  const held = await reserveMemory(call, ownerOf(call.caller.uid), report)
  try {
    const text = textOf(call.app, report)
    if (Buffer.byteLength(text) <= mostInline) return { report, text, ticket: '' }
    return { report, text: '', ticket: sealTicket(call, { ours: [key, hash('sha256', text)] }) }
  } finally {
    held.free()
  }
}

async function rawOfStored(call: Call, facts: ReportFacts): Promise<RawReport | undefined> {
  const repo = { id: facts.repo }
  const blob = await findBlob(call, repo, facts.rawDigest)
  if (!blob) return undefined
  const report = headOf(facts)
  if (blob.size > mostInline) return { report, text: '', ticket: sealTicket(call, { kept: [repo.id, blob.digest] }) }
  const bytes = await readBlob(call, repo, blob, mostInline)
  return bytes && { report, text: bytes.toString(), ticket: '' }
}

/** Throws RESOURCE_EXHAUSTED if the text exceeds the length limit. */
function textOf({ version }: Call['app'], report: ImageReport): string {
  const text =
    report.vulnerabilities.length > maxVulnerabilities ? '' : toCycloneDx(report, { name: 'pinfold', version })
  if (text !== '' && text.length <= maxRaw) return text
  throw new AppError('RESOURCE_EXHAUSTED', `the report is longer than ${maxRaw} characters`, {
    reason: 'LIST_TOO_LONG',
  })
}

const ownerOf = (uid: string): string => (uid === '' ? '' : rootOf(uid))

/** Waits for free memory for the text of a report. */
function reserveMemory({ app, signal }: Opening, owner: string, { vulnerabilities }: ImageReport, sending?: Sending) {
  const bytes = vulnerabilities.reduce((sum, one) => sum + lengthOf(one) + packagesLength(one), 0)
  const { filled, take } = sending ?? { filled: () => undefined, take() {} }
  return app.scanning.reading.reserve(bytes, signal, { owner, filled, take })
}

type Opening = Pick<Work, 'app' | 'log'> & { signal: AbortSignal }
type Sending = { filled(): number | undefined; take(why: Error): void }

/** Content of a ticket. `ours`: the key of our own report and the hash of its text. `kept`: a blob of a repository. */
type Opened = { ours: readonly [ReportKey, string] } | { kept: readonly [repo: number, digest: string] }

function sealTicket({ app }: Call, opened: Opened): string {
  const until = app.clock().getTime() + linkMs
  return app.cipher.encrypt(purpose, Buffer.from(JSON.stringify({ until, ...opened }))).toString('base64url')
}

/** A report that can be sent once. The caller must call `sendTo` or `close`. */
export type OpenReport = {
  size: number
  /** Writes the report to the target and ends the target. */
  sendTo(target: Writable): Promise<void>
  close(): void
}

/**
 * Opens the report of a ticket. Throws NOT_FOUND if the ticket is invalid, if the report is missing, or if the report has
 * changed. Throws PERMISSION_DENIED if the ticket has expired.
 */
export async function openRaw(opening: Opening, ticket: string): Promise<OpenReport> {
  const { app } = opening
  const sealed = /^[\w-]{1,16384}$/.test(ticket) ? Buffer.from(ticket, 'base64url') : Buffer.alloc(0)
  // Different base64url texts can decode to the same bytes. Only the canonical text is accepted.
  const plain = sealed.toString('base64url') === ticket ? app.cipher.decrypt(purpose, sealed) : undefined
  if (!plain) throw reportNotFound()
  const { until, ...opened } = JSON.parse(plain.toString()) as { until: number } & Opened
  if (app.clock().getTime() >= until)
    throw permissionDenied('the link has expired; request the report again to get a new one')
  return 'ours' in opened ? openOwn(opening, ...opened.ours) : openStored(opening, ...opened.kept)
}

const reportNotFound = () => notFound(vulnReportType, 'of this link')

async function openStored(opening: Opening, id: number, digest: string): Promise<OpenReport> {
  const blob = await findBlob(opening, { id }, digest)
  const content = blob && (await openBlob(opening, { id }, blob, { client: opening.signal }))
  if (!content) throw reportNotFound()
  return {
    size: blob.size,
    sendTo: (target) => content.sendTo(target),
    close: () => content.stream().destroy(),
  }
}

async function openOwn(opening: Opening, key: ReportKey, digest: string): Promise<OpenReport> {
  const again = await reportAgain({ ...opening, now: opening.app.clock().toISOString() }, key)
  if (!again) throw reportNotFound()
  let sent: number | undefined
  let cut = (_: Error): void => {}
  const held = await reserveMemory(opening, ownerOf(again.repos[0]!), again.report, {
    filled: () => sent,
    take: (why) => cut(why),
  })
  try {
    const text = Buffer.from(textOf(opening.app, again.report))
    if (hash('sha256', text) !== digest) throw reportNotFound()
    return {
      size: text.length,
      async sendTo(target) {
        sent = 0
        cut = (why) => target.destroy(why)
        try {
          await pipeline(Readable.from(slicesOf(text, (bytes) => (sent = bytes))), target)
        } finally {
          held.free()
        }
      },
      close: () => held.free(),
    }
  } catch (error) {
    held.free()
    throw error
  }
}

const sliceBytes = 64 * 1024

/** Slices of the text. Calls `onSent` with the number of bytes that were taken so far. */
function* slicesOf(text: Buffer, onSent: (bytes: number) => void): Generator<Buffer> {
  for (let at = 0; at < text.length; at += sliceBytes) {
    onSent(at)
    yield text.subarray(at, at + sliceBytes)
  }
}
