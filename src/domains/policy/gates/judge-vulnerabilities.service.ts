// Checks an image against the vulnerability rule of an admission policy.
import type { Work } from '#app.ts'
import { fixesFor } from '#contents/match.ts'
import { contentsOf } from '#domains/registry/images/image-contents.service.ts'
import { orderOf } from '#domains/scanning/findings/compare.service.ts'
import { findingStates } from '#domains/scanning/findings/findings.model.ts'
import { severityRank, unknownSeverity } from '#domains/scanning/findings/severity.model.ts'
import { countedAt, type Known } from '#domains/scanning/image-findings/image-findings.model.ts'
import { findKnownNow, firstFindingsIn } from '#domains/scanning/image-findings/image-findings.store.ts'
import type { Gap } from '#domains/scanning/image-findings/reports.model.ts'
import { findList } from '#domains/scanning/lists/lists.store.ts'
import { ranksOf } from '#domains/scanning/ranks/ranks.service.ts'
import { severityLevels } from '#domains/scanning/records/records.model.ts'
import { type Compared, gapOfUnread, gapsOfCompared } from '#domains/scanning/reports/image-gaps.service.ts'
import { unread } from '#domains/scanning/reports/image-knowledge.service.ts'
import { notScanned, unknownText } from '#domains/scanning/reports/result-coverage.model.ts'
import { withAccepted } from '#domains/scanning/risks/accepted.service.ts'
import { rootOf } from '#lib/uid.ts'
import {
  type DatedVerdict,
  fails,
  passes,
  plural,
  type Severity,
  type VulnerabilityRule,
  waits,
} from './gates.model.ts'

/** Most findings that are read for one image, the highest severity first. */
const mostFindings = 5000
const dayMs = 86_400_000

export async function judgeVulnerabilities(
  { app, cause }: Work,
  repo: { id: number; uid: string },
  digest: string,
  rule: VulnerabilityRule,
): Promise<DatedVerdict> {
  const { db } = app
  const [contents] = await contentsOf(db, repo.id, [digest])
  if (!contents) return waits('its content has not been read yet')
  const strict = rule.unknown === 'DENY'
  if (contents.state !== 'known') {
    return strict ? fails(notScanned([gapOfUnread(contents)])) : passes('its content is unknown')
  }
  const { packages, distribution, gaps } = contents
  const incomplete = strict && gaps.length > 0 ? fails(notScanned(gaps.map(unread))) : undefined
  if (packages === '') return incomplete ?? passes('it has no known packages')
  const list = await findList(db, { hash: packages, distribution })
  if (!list || list.matchTime === '') return waits('its packages have not been compared with advisories yet')
  const organization = rootOf(repo.uid)
  const all = await findKnownNow(db, list.listNo, [organization], mostFindings + 1)
  const images = [{ repoUid: repo.uid, digest }]
  const meant = all.filter((one) => isCandidate(one, rule))
  const old = await selectOldEnough(app, meant, rule, { organization, now: cause.now })
  const known = await withAccepted(db, old, images, distribution.id)
  const counting = await countFindings(app, rule, known, cause.now)
  if (counting.ids.length > 0) {
    const bad = known.filter((one) => counting.isIn(one))
    const more = { count: counting.ids.length, unknownSeverity: counting.uncounted }
    return fails(describeDenial(rule, counting), {
      ...more,
      since: () => findDeniedSince(app, bad, rule, organization),
    })
  }
  const compared = { contents, list, known: all, most: mostFindings + 1 }
  const left = strict ? await findStrictGaps(app, compared, cause.now) : []
  const unknown = { unknownSeverity: counting.uncounted }
  if (left.length > 0) return fails(notScanned(left), unknown)
  return { ...passes(`it has no known ${vulnerabilitiesOf(rule, 0)}`), ...unknown }
}

/** Coverage gaps for which a strict policy refuses an image. Outdated data of a source is not such a gap. */
async function findStrictGaps(app: Work['app'], compared: Compared, now: string): Promise<Gap[]> {
  const gaps = await gapsOfCompared(app, compared, now)
  return gaps.filter(({ reason }) => reason !== 'SOURCE_FAILED' && reason !== 'SOURCE_STALE')
}

/**
 * Vulnerabilities that count for a rule. `unknown` is the number of findings of unknown severity that count. `uncounted` is the
 * number of findings of unknown severity that do not count.
 */
type Counting = { ids: string[]; unknown: number; uncounted: number; isIn(one: Known): boolean }

async function countFindings(
  app: Work['app'],
  rule: VulnerabilityRule,
  known: readonly Known[],
  now: string,
): Promise<Counting> {
  const isOf = (one: Known) => isSevere(one, rule)
  const idsOf = async (some: readonly Known[]) =>
    selectExploited(app, rule, [...new Set(some.flatMap((one) => countedAt(one, now)))])
  const ids = await idsOf(known.filter(isOf))
  const rated = new Set(known.filter((one) => isOf(one) && !isUnrated(one)).flatMap((one) => countedAt(one, now)))
  const others = (await idsOf(known.filter((one) => !isOf(one)))).filter((id) => !ids.includes(id))
  return {
    ids,
    unknown: ids.filter((id) => !rated.has(id)).length,
    uncounted: others.length,
    isIn: (one) => isOf(one) && countedAt(one, now).some((id) => ids.includes(id)),
  }
}

/**
 * True if the rule applies to the finding, or would apply if its severity were known. Findings of unknown severity are always
 * reported.
 */
function isCandidate(one: Known, rule: VulnerabilityRule): boolean {
  if (one.state !== findingStates.vulnerable) return false
  if (!isSevere(one, rule) && !isUnrated(one)) return false
  return !rule.onlyFixable || fixesFor(one.component, one.affected, orderOf(one.component)).length > 0
}

const isUnrated = ({ severity }: Known): boolean => severity === unknownSeverity

function isSevere(one: Known, { leastSeverity, unknownSeverity: counted }: VulnerabilityRule): boolean {
  if (leastSeverity === '') return true
  if (isUnrated(one) && counted === 'NOT_COUNTED') return false
  const level = isUnrated(one) ? severityLevels.high : one.severity
  return severityRank(level) >= severityRank(severityLevels[lower(leastSeverity)])
}

/**
 * Findings that are older than the rule requires, by the time of their discovery. If a source rewrites its record, the finding
 * keeps its first time.
 */
async function selectOldEnough(
  app: Work['app'],
  found: readonly Known[],
  { afterDays }: VulnerabilityRule,
  { organization, now }: { organization: string; now: string },
): Promise<readonly Known[]> {
  const latest = plusDays(now, -afterDays)
  if (found.every(({ foundTime }) => foundTime <= latest)) return found
  const first = await findFirstTimes(app, found, organization)
  return found.filter((one) => first(one) <= latest)
}

/** Time from which the first of the findings counts for the rule. */
async function findDeniedSince(
  app: Work['app'],
  bad: readonly Known[],
  { afterDays }: VulnerabilityRule,
  organization: string,
): Promise<string> {
  const times = bad.map(await findFirstTimes(app, bad, organization)).sort()
  return plusDays(times[0]!, afterDays)
}

/** Time at which each finding was first found. */
async function findFirstTimes(
  { db }: Work['app'],
  found: readonly Known[],
  organization: string,
): Promise<(one: Known) => string> {
  const keyOf = (componentNo: number, recordId: string) => `${componentNo} ${recordId}`
  const first = new Map<string, string>()
  const components = found.map(({ component }) => component.componentNo)
  for (const { componentNo, recordId, foundTime } of await firstFindingsIn(db, components, [organization])) {
    const key = keyOf(componentNo, recordId)
    if (foundTime < (first.get(key) ?? '~')) first.set(key, foundTime)
  }
  return ({ component, record, foundTime }) => first.get(keyOf(component.componentNo, record.id)) ?? foundTime
}

const plusDays = (time: string, days: number): string => new Date(Date.parse(time) + days * dayMs).toISOString()

async function selectExploited(
  app: Work['app'],
  { onlyExploited }: VulnerabilityRule,
  ids: string[],
): Promise<string[]> {
  if (!onlyExploited || ids.length === 0) return ids
  const ranks = await ranksOf(app, ids)
  return ids.filter((id) => ranks.get(id)?.exploited)
}

/** Reason of a refusal. Mentions findings of unknown severity that count, and findings of unknown severity that do not. */
function describeDenial(rule: VulnerabilityRule, { ids, unknown, uncounted }: Counting): string {
  const isRated = rule.leastSeverity === ''
  const counted = unknown === 0 || isRated ? '' : `, ${unknown} of them with unknown severity, which counts as high`
  const left = uncounted === 0 ? '' : `; ${unknownText(uncounted, true)}`
  return `it has ${ids.length} ${vulnerabilitiesOf(rule, ids.length)}${counted}${left}`
}

/** Describes the vulnerabilities of a rule, for example `fixable vulnerabilities of severity high or worse`. */
function vulnerabilitiesOf(
  { leastSeverity, onlyFixable, onlyExploited, afterDays }: VulnerabilityRule,
  count: number,
): string {
  const kind = `${onlyExploited ? 'exploited ' : ''}${onlyFixable ? 'fixable ' : ''}`
  const worse = leastSeverity === 'CRITICAL' ? '' : ' or worse'
  const level = leastSeverity === '' ? '' : ` of severity ${lower(leastSeverity)}${worse}`
  const since = afterDays === 0 ? '' : ` found at least ${plural(afterDays, 'day')} ago`
  return `${kind}${count === 1 ? 'vulnerability' : 'vulnerabilities'}${level}${since}`
}

const lower = (severity: Severity) => severity.toLowerCase() as Lowercase<Severity>
