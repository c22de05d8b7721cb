// Findings in one image with the advisory data that caused them, and the image's coverage gaps.
import type { Call } from '#app.ts'
import { fixesFor } from '#contents/match.ts'
import { packageUrl } from '#contents/package-url.ts'
import { contentsOf, isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { orderOf } from '../findings/compare.service.ts'
import { findingStates } from '../findings/findings.model.ts'
import { highestScore, levelName, severityRank, unknownSeverity } from '../findings/severity.model.ts'
import { type Accepted, countedAt, isAcceptedAt, type Known } from '../image-findings/image-findings.model.ts'
import type { Gap } from '../image-findings/reports.model.ts'
import { ranksOf } from '../ranks/ranks.service.ts'
import type { Rank } from '../records/records.model.ts'
import { vulnerabilityIds } from '../records/records.model.ts'
import { gapsOfCompared, isUncertain, purlOf, readCompared, unreadGap } from './image-gaps.service.ts'
import { type ResultCoverage, resultCoverage } from './result-coverage.model.ts'

export type ShownFinding = Known & {
  vulnerabilities: string[]
  purl: string
  fixes: string[]
  level: string
  /** First line of the summary of the record. */
  title: string
  /** CVSS base score. Undefined if the record has none. */
  score: number | undefined
  suppressedBy: SuppressedBy | undefined
  /** Accepted risks that apply to the finding now. */
  acceptedBy: readonly Accepted[]
  /** Data on known exploitation, and the highest exploit probability among the vulnerabilities of the finding. */
  rank: Omit<Rank, 'cve'>
}
/** Reason why a finding is suppressed: the record of a data source on the distribution package that owns the files. */
export type SuppressedBy = { purl: string; source: string; record: string; fromTime: string }
/**
 * Finding in a package whose version cannot be compared. `vulnerabilities` are those that the package may have and that are not
 * accepted.
 */
export type UncertainFinding = Known & { vulnerabilities: readonly string[]; purl: string }
export type ImageFindings = {
  findings: ShownFinding[]
  uncertain: UncertainFinding[]
  gaps: Gap[]
  coverage: ResultCoverage
}

const maxFindings = 20_000
const maxTitle = 200

function titleOf(summary: string): string {
  const line = summary.split('\n', 1)[0]!.trim()
  return line.length > maxTitle ? `${line.slice(0, maxTitle - 1)}…` : line
}

/** Lists the findings of an image. Throws NOT_FOUND if the repository or the image does not exist. */
export async function imageFindings(call: Call, repoUid: string, digest: string): Promise<ImageFindings> {
  const { db } = call.app
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  const [contents] = await contentsOf(db, repo.id, [digest])
  if (!contents && !(await isKnownImage(db, repo.id, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  if (contents?.state !== 'known') return nothingOf([await unreadGap(call.app, repo, digest, contents)])
  const compared = await readCompared(call.app, repo, digest, { contents, most: maxFindings })
  if (Array.isArray(compared)) return nothingOf(compared)
  const { distribution } = contents
  const { known } = compared
  const uncertain = known
    .filter((one) => isUncertain(one, call.now))
    .map((one) => ({ ...one, vulnerabilities: countedAt(one, call.now), purl: purlOf(one, distribution.id) }))
  const shown = known
    .filter(({ state }) => state === findingStates.vulnerable)
    .map((one) => ({
      ...one,
      vulnerabilities: vulnerabilityIds(one.record),
      purl: purlOf(one, distribution.id),
      fixes: fixesFor(one.component, one.affected, orderOf(one.component)),
      level: levelName(one.severity),
      title: titleOf(one.record.summary),
      score: highestScore(one.record.severities)?.score,
      suppressedBy: suppressionOf(one, distribution.id),
      acceptedBy: one.accepted.flat().filter((by) => isAcceptedAt(by, by.vulnerability, call.now)),
    }))
  const gaps = await gapsOfCompared(call.app, compared, call.now)
  const unknown = shown.filter((one) => one.severity === unknownSeverity && countedAt(one, call.now).length > 0)
  return {
    ...{ uncertain, gaps, findings: await ranked(call.app, shown) },
    coverage: resultCoverage(gaps, unknown.length),
  }
}

const nothingOf = (gaps: Gap[]): ImageFindings => ({
  ...{ findings: [], uncertain: [], gaps, coverage: resultCoverage(gaps, 0) },
})

/** Sorts findings: exploited ones first, then by severity, exploit probability and age. */
async function ranked(app: Call['app'], found: readonly Omit<ShownFinding, 'rank'>[]): Promise<ShownFinding[]> {
  const vulnerabilities = found.flatMap(({ vulnerabilities }) => vulnerabilities)
  const ranks = await ranksOf(app, vulnerabilities)
  const all = found.map((one) => ({
    ...one,
    rank: combineRanks(one.vulnerabilities.flatMap((id) => ranks.get(id) ?? [])),
  }))
  const used = ({ rank }: ShownFinding) => (rank.exploited ? 1 : 0)
  const likely = ({ rank }: ShownFinding) => rank.likelihood?.epss ?? -1
  return all.sort(
    (a, b) =>
      used(b) - used(a) ||
      severityRank(b.severity) - severityRank(a.severity) ||
      likely(b) - likely(a) ||
      a.findingNo - b.findingNo,
  )
}

function combineRanks(ranks: readonly Rank[]): Omit<Rank, 'cve'> {
  const exploited = ranks.find((one) => one.exploited)?.exploited
  const likely = ranks.flatMap(({ likelihood }) => likelihood ?? []).sort((a, b) => b.epss - a.epss)[0]
  return { ...(exploited && { exploited }), ...(likely && { likelihood: likely }) }
}

function suppressionOf({ suppressed }: Known, distribution: string): SuppressedBy | undefined {
  const one = suppressed.find(({ untilTime }) => untilTime === '')
  if (!one) return undefined
  const { source, record, fromTime, owner } = one
  return { purl: packageUrl(owner, distribution), source, record, fromTime }
}
