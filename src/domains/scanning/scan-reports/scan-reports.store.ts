import { atMost } from '#db/bulk.ts'
import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { nameOf } from '#lib/naming/numbered.ts'
import {
  mostKept,
  type NewReport,
  type ReadReport,
  type ReportFacts,
  type ReportOrigin,
  type ReportState,
  reportOrigins,
  reportStates,
  type StatedVulnerability,
  type StoredReport,
  sizeOf,
  type WaitingReport,
} from './scan-reports.model.ts'

type Row = Omit<ReportFacts, 'origin' | 'state' | 'signers'> & { origin: number; state: number; signers: string }

const columns = sql`
  s.id, s.repo_id AS repo, s.digest, s.origin, s.referrer, s.raw_digest AS "rawDigest", s.actor,
  s.take_time AS "takeTime", s.state, s.reason, s.message, s.scanner, s.tool, s.tool_version AS "toolVersion",
  s.format, s.build_time AS "buildTime", s.create_time AS "createTime", s.seen_time AS "seenTime", s.total, s.size,
  s.signatures, s.signers`

function fromRow(row: Row): ReportFacts {
  return {
    ...row,
    origin: nameOf<ReportOrigin>(reportOrigins, row.origin),
    state: nameOf<ReportState>(reportStates, row.state),
    signers: JSON.parse(row.signers) as string[],
  }
}

const toStoredReport = (row: Row & { vulnerabilities: string }): StoredReport => {
  const { vulnerabilities, ...facts } = row
  return { ...fromRow(facts), vulnerabilities: JSON.parse(vulnerabilities) as StoredReport['vulnerabilities'] }
}

/**
 * Inserts a report. A report with a reason is ignored, any other report is queued. Returns undefined if the manifest that
 * contains the report has one already.
 */
export async function insertReport(
  tx: Tx,
  one: NewReport,
  ignored: { reason: string; message: string } | undefined,
  now: string,
): Promise<number | undefined> {
  const { repo, digest, origin, referrer, rawDigest, actor, buildTime = '' } = one
  const state = ignored ? reportStates.ignored : reportStates.waiting
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO scan_reports (repo_id, organization, digest, origin, referrer, raw_digest, actor, take_time, state, reason,
           message, due_time, build_time)
    VALUES (${repo.id}, ${repo.uid.slice(0, 40)}, ${digest}, ${reportOrigins[origin]}, ${referrer}, ${rawDigest},
            ${actor}, ${now}, ${state}, ${ignored?.reason ?? ''}, ${ignored?.message ?? ''}, ${now}, ${buildTime})
        ON CONFLICT DO NOTHING RETURNING id`)
  return row?.id
}

/** Reasons for ignoring a report that may not apply at the next push. */
const passing = ['NOT_ALLOWED', 'TOO_MANY', 'QUOTA_EXCEEDED', 'BLOB_MISSING']

/** Queues an ignored report again. Returns false if there is no ignored report, or if its reason is permanent. */
export async function reviveReport(
  tx: Tx,
  { repo, referrer, rawDigest, actor }: NewReport,
  now: string,
): Promise<boolean> {
  const revived = await tx.run(sql`
    UPDATE scan_reports SET state = 1, reason = '', message = '', attempts = 0, actor = ${actor}, due_time = ${now}
     WHERE repo_id = ${repo.id} AND raw_digest = ${rawDigest} AND referrer = ${referrer} AND origin IN (2, 4)
       AND state = 3 AND reason IN (${list(passing)})`)
  return revived === 1
}

/**
 * True if the same attestation of the image was pushed before. False if that report was ignored for a reason that may not apply
 * any more.
 */
export async function isPushed(reader: Reader, { repo, digest, rawDigest }: NewReport): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM scan_reports
     WHERE repo_id = ${repo.id} AND raw_digest = ${rawDigest} AND digest = ${digest} AND origin = 4
       AND reason NOT IN (${list(passing)}) LIMIT 1`)
  return row !== undefined
}

/** Number of queued reports of an organization, at most `most`. */
export async function countWaiting(reader: Reader, organization: string, most: number): Promise<number> {
  const rows = await reader.all(sql`
    SELECT 1 AS found FROM scan_reports WHERE state = 1 AND organization = ${organization} LIMIT ${most}`)
  return rows.length
}

const waitingColumns = sql`
  id, repo_id AS repo, organization, digest, origin, referrer, raw_digest AS "rawDigest", attempts,
  build_time AS "buildTime"`

/**
 * The first report of the next organization after `after` that has queued reports. The report's due time can be in the future.
 */
export async function nextWaiting(
  reader: Reader,
  after: string,
): Promise<(WaitingReport & { dueTime: string }) | undefined> {
  return reader.get<WaitingReport & { dueTime: string }>(sql`
    SELECT ${waitingColumns}, due_time AS "dueTime" FROM scan_reports WHERE state = 1 AND organization > ${after}
     ORDER BY organization, due_time, id LIMIT 1`)
}

export async function postponeReport(tx: Tx, id: number, attempts: number, dueTime: string): Promise<void> {
  await tx.run(sql`
    UPDATE scan_reports SET attempts = ${attempts}, due_time = ${dueTime} WHERE id = ${id} AND state = 1`)
}

export async function ignoreReport(tx: Tx, id: number, reason: string, message: string): Promise<void> {
  await tx.run(sql`
    UPDATE scan_reports SET state = 3, reason = ${reason}, message = ${message} WHERE id = ${id} AND state = 1`)
}

/** Stores a parsed report. Returns false if the report was deleted or was parsed already. */
export async function finishReport(tx: Tx, id: number, read: ReadReport, now: string): Promise<boolean> {
  const { scanner, tool, toolVersion, format, buildTime, total, vulnerabilities, levels, statements } = read
  const { signatures, note } = read
  const state = statingFormats.includes(format) ? reportStates.stated : reportStates.read
  const checkTime = signatures > 0 && statements !== '' ? now : ''
  const finished = await tx.run(sql`
    UPDATE scan_reports SET state = ${state}, scanner = ${scanner}, tool = ${tool}, tool_version = ${toolVersion},
           format = ${format}, build_time = ${buildTime}, create_time = ${now}, seen_time = ${now}, total = ${total},
           size = ${sizeOf(read)}, signatures = ${signatures}, message = ${note}, check_time = ${checkTime}, attempts = 0
     WHERE id = ${id} AND state = 1`)
  if (finished !== 1) return false
  await tx.run(sql`
    INSERT INTO scan_report_texts (report_id, vulnerabilities, levels, statements)
    VALUES (${id}, ${vulnerabilities}, ${levels}, ${statements})`)
  return true
}

/** Formats that have VEX statements but no findings. */
const statingFormats: readonly string[] = ['openvex', 'csaf']

/** Deletes a queued report. */
export async function deleteReport(tx: Tx, id: number): Promise<void> {
  await tx.run(sql`DELETE FROM scan_reports WHERE id = ${id} AND state = 1`)
}

/** Newest report of an image by a tool. Returns undefined if its content differs from the given content. */
export async function findSame(
  reader: Reader,
  { repo, digest, rawDigest }: Pick<WaitingReport, 'repo' | 'digest' | 'rawDigest'>,
  { tool, toolVersion, format, buildTime, vulnerabilities, statements, signatures }: ReadReport,
): Promise<number | undefined> {
  type Newest = {
    id: number
    version: string
    built: string
    reported: string
    stated: string
    raw: string
  }
  const newest = await reader.get<Newest>(sql`
    SELECT s.id, s.raw_digest AS raw, s.tool_version AS version, s.build_time AS built, x.vulnerabilities AS reported, x.statements AS stated
      FROM scan_reports s JOIN scan_report_texts x ON x.report_id = s.id
     WHERE s.repo_id = ${repo} AND s.digest = ${digest} AND s.state IN (2, 4) AND s.tool = ${tool} AND s.format = ${format}
     ORDER BY s.id DESC LIMIT 1`)
  const same =
    newest?.version === toolVersion &&
    newest.built === buildTime &&
    newest.reported === vulnerabilities &&
    newest.stated === statements &&
    // Two reports with the same content can have different signatures.
    (signatures === 0 || newest.raw === rawDigest)
  return same ? newest.id : undefined
}

export async function noteLastSeen(tx: Tx, id: number, now: string): Promise<void> {
  await tx.run(sql`
    UPDATE scan_reports SET seen_time = ${now},
           check_time = CASE WHEN signatures < 0 AND check_time = '' THEN CAST(${now} AS TEXT) ELSE check_time END
     WHERE id = ${id}`)
}

/**
 * Deletes the oldest reports of an image beyond the limits. VEX documents without a trusted signature are deleted first. Reports
 * whose signatures were not verified yet stay. Returns the number of deleted bytes.
 */
export async function pruneReports(tx: Tx, repo: number, digest: string): Promise<number> {
  let bytes = 0
  for (const [state, most] of [
    [reportStates.read, mostKept.read],
    [reportStates.ignored, mostKept.ignored],
    [reportStates.stated, mostKept.stated],
  ] as const) {
    const rows = await tx.all<{ id: number; isSigned: number }>(sql`
      SELECT id, CASE WHEN signers = '[]' THEN 0 ELSE 1 END AS "isSigned" FROM scan_reports
       WHERE repo_id = ${repo} AND digest = ${digest} AND state = ${state} ORDER BY id DESC LIMIT ${most + prunedAtOnce}`)
    const isFirst = ({ isSigned }: { isSigned: number }) => state === reportStates.stated && isSigned === 1
    const kept = [...rows.filter(isFirst), ...rows.filter((row) => !isFirst(row))]
    const beyond = kept.slice(most).map(({ id }) => id)
    if (beyond.length === 0) continue
    const gone = await tx.all<Sized>(sql`
      DELETE FROM scan_reports WHERE id IN (${list(beyond)}) AND check_time = '' RETURNING size`)
    bytes += sumOf(gone)
  }
  return bytes
}

const prunedAtOnce = 400

type Sized = { size: number }
const sumOf = (rows: readonly Sized[]): number => rows.reduce((sum, { size }) => sum + size, 0)

/** All reports of an image in any state, the newest first. */
export async function listFacts(reader: Reader, repo: number, digest: string, most: number): Promise<ReportFacts[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scan_reports s WHERE s.repo_id = ${repo} AND s.digest = ${digest}
     ORDER BY s.id DESC LIMIT ${most}`)
  return rows.map(fromRow)
}

/** Parsed reports of a repository, the newest first. Ignored reports and VEX documents are left out. */
export async function factsOfRepo(reader: Reader, repo: number, most: number): Promise<ReportFacts[]> {
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scan_reports s WHERE s.repo_id = ${repo} AND s.state = 2 ORDER BY s.id DESC LIMIT ${most}`)
  return rows.map(fromRow)
}

/** Filter by scanner number and creation time. The time is after `since`, and at `until` or before. */
export type DigestFilter = { scanner: number | undefined; since: string; until: string | undefined; most: number }

/**
 * Parsed reports of a digest, the newest first, in some scopes of one organization or in all organizations. Ignored reports and
 * VEX documents are left out.
 */
export async function factsOfDigest(
  reader: Reader,
  digest: string,
  within: { organization: string; scopes: readonly string[] } | undefined,
  { scanner, since, until, most }: DigestFilter,
): Promise<ReportFacts[]> {
  const scopes = within?.scopes.map((scope) => sql`(r.uid = ${scope} OR (r.uid > ${scope} AND r.uid < ${`${scope}0`}))`)
  const there = within && sql`AND s.organization = ${within.organization} AND (${join(scopes!, ' OR ')})`
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM scan_reports s JOIN repos r ON r.id = s.repo_id
     WHERE s.digest = ${digest} AND s.state = 2 AND s.create_time > ${since} ${there ?? sql``}
       ${scanner === undefined ? sql`` : sql`AND s.scanner = ${scanner}`}
       ${until === undefined ? sql`` : sql`AND s.create_time <= ${until}`}
     ORDER BY s.id DESC LIMIT ${most}`)
  return rows.map(fromRow)
}

/** Reports of an image that contain VEX statements, the newest first. Each has the size of its statements in bytes. */
export async function documentsOf(
  reader: Reader,
  repo: number,
  digest: string,
  most: number,
): Promise<{ id: number; size: number }[]> {
  return reader.all<{ id: number; size: number }>(sql`
    SELECT s.id, octet_length(x.statements) AS size FROM scan_reports s JOIN scan_report_texts x ON x.report_id = s.id
     WHERE s.repo_id = ${repo} AND s.digest = ${digest} AND s.state IN (2, 4) AND x.statements <> ''
     ORDER BY s.id DESC LIMIT ${most}`)
}

/** VEX statements of a report. Returns undefined if the report has none. */
export async function findStatements(
  reader: Reader,
  id: number,
): Promise<{ facts: ReportFacts; statements: StatedVulnerability[] } | undefined> {
  const row = await reader.get<Row & { statements: string }>(sql`
    SELECT ${columns}, x.statements FROM scan_reports s JOIN scan_report_texts x ON x.report_id = s.id
     WHERE s.id = ${id} AND x.statements <> ''`)
  if (!row) return undefined
  const { statements, ...facts } = row
  return { facts: fromRow(facts), statements: JSON.parse(statements) as StatedVulnerability[] }
}

export async function findReport(reader: Reader, id: number): Promise<StoredReport | undefined> {
  const row = await reader.get<Row & { vulnerabilities: string }>(sql`
    SELECT ${columns}, x.vulnerabilities FROM scan_reports s JOIN scan_report_texts x ON x.report_id = s.id
     WHERE s.id = ${id} AND s.state = 2`)
  return row && toStoredReport(row)
}

/** Severity of each vulnerability of a report by ID, and the number of characters that were read. */
export async function findLevels(reader: Reader, id: number): Promise<{ levels: Map<string, number>; size: number }> {
  const row = await reader.get<{ levels: string }>(sql`SELECT levels FROM scan_report_texts WHERE report_id = ${id}`)
  if (!row) return { levels: new Map(), size: 0 }
  if (row.levels !== '')
    return { levels: new Map(JSON.parse(row.levels) as [string, number][]), size: row.levels.length }
  const report = await findReport(reader, id)
  const levels = new Map(report?.vulnerabilities.map(({ id: name, severity }) => [name, severity]))
  return { levels, size: report?.size ?? 0 }
}

export async function findFacts(reader: Reader, id: number): Promise<ReportFacts | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM scan_reports s WHERE s.id = ${id}`)
  return row && fromRow(row)
}

/** Deletes at most `limit` reports of a repository. Returns their number and bytes. */
export async function deleteReportsOf(tx: Tx, repo: number, limit: number): Promise<{ count: number; bytes: number }> {
  const some = atMost(limit, 'scan_reports', 'id', sql`repo_id = ${repo}`)
  const gone = await tx.all<Sized>(sql`DELETE FROM scan_reports WHERE ${some} RETURNING size`)
  return { count: gone.length, bytes: sumOf(gone) }
}

/** Deletes the reports of one image. Returns the deleted bytes. */
export async function deleteReportsOfImage(tx: Tx, repo: number, digest: string): Promise<number> {
  return sumOf(
    await tx.all<Sized>(sql`DELETE FROM scan_reports WHERE repo_id = ${repo} AND digest = ${digest} RETURNING size`),
  )
}
