// What gates say of the vulnerabilities of an image.
import type { Work } from '#app.ts'
import { fixesFor } from '#contents/match.ts'
import { contentsOf } from '#domains/registry/images/image-contents.service.ts'
import { rootOf } from '#lib/uid.ts'
import { countedAt, heldAt, isOwnFullAt, type Known } from '../known/known.model.ts'
import { findKnownNow, sightingsIn } from '../known/known.store.ts'
import type { StoredList } from '../lists/lists.model.ts'
import { ecosystemsOfList, findList } from '../lists/lists.store.ts'
import { findingStates } from '../matching/findings.model.ts'
import { orderOf } from '../matching/matching.service.ts'
import { severityRank } from '../matching/severity.model.ts'
import { ranksOf } from '../ranks/ranks.service.ts'
import { severityLevels } from '../records/records.model.ts'
import { listReads } from '../records/records.store.ts'
import { coverageOf } from '../reports/coverage.service.ts'
import { withAccepted } from '../risks/accepted.service.ts'
import type { Severity, VulnerabilityRule } from './gates.model.ts'
import { fails, type Judged, passes, plural, waits } from './verdicts.model.ts'

/** Findings of one image that are looked at, the worst first. */
const mostFindings = 5000
const dayMs = 86_400_000

export async function judgeVulnerabilities(
  { app, cause }: Work,
  repo: { id: number; uid: string },
  digest: string,
  rule: VulnerabilityRule,
): Promise<Judged> {
  const { db } = app
  const [contents] = await contentsOf(db, repo.id, [digest])
  if (!contents) return waits('nothing is known yet of what it contains')
  const strict = rule.unknown === 'DENY'
  const unread = 'nobody knows what it contains'
  if (contents.state !== 'known') return strict ? fails(unread) : passes(unread)
  const { packages, distribution, gaps } = contents
  const incomplete = strict && gaps.length > 0 ? fails('not all of what it contains is known') : undefined
  if (packages === '') return incomplete ?? passes('it contains no packages')
  const list = await findList(db, { hash: packages, distribution })
  if (!list || list.matchTime === '') return waits('its packages wait to be compared')
  const all = await findKnownNow(db, list.listNo, [rootOf(repo.uid)], mostFindings + 1)
  const place = rootOf(repo.uid)
  const meant = await oldEnough(
    app,
    all.filter((one) => isMeant(one, rule)),
    rule,
    { place, now: cause.now },
  )
  const known = await withAccepted(db, meant, [{ repoUid: repo.uid, digest }], distribution.id)
  const ids = await exploitedOf(app, rule, [...new Set(known.flatMap((one) => countedAt(one, cause.now)))])
  const what = textOf(rule, ids.length)
  if (ids.length > 0) {
    const bad = known.filter((one) => countedAt(one, cause.now).some((id) => ids.includes(id)))
    return fails(`it has ${what}`, { count: ids.length, since: () => badSince(app, bad, rule, place) })
  }
  const unsaid = strict ? await unsaidOf(app, list, all, cause.now) : ''
  if (unsaid !== '') return fails(unsaid)
  return incomplete ?? passes(`it has ${what}`)
}

/** Why what was found in a list may not be all there is; empty where it is all. */
async function unsaidOf(app: Work['app'], list: StoredList, found: readonly Known[], now: string): Promise<string> {
  if (list.isOver) return 'more is found in it than is kept of one image'
  if (isOwnFullAt(found, now)) return 'more advisories of the organisation are about it than are kept of one package'
  if (found.length > mostFindings) return 'more is found in it than is looked at'
  const silent = await isSilent(app, list, found, now)
  return silent ? 'of some of its packages nobody says whether they are vulnerable' : ''
}

/** Whether no source speaks of some packages of a list, or only in versions that cannot be compared. */
async function isSilent({ db, config }: Work['app'], list: StoredList, found: readonly Known[], now: string) {
  if (found.some((one) => one.state === findingStates.unknown && heldAt(one, now))) return true
  const ecosystems = await ecosystemsOfList(db, list)
  const { gapsAt } = coverageOf(ecosystems, await listReads(db, ecosystems), config.vulnerabilityMaxAgeDays)
  return gapsAt(now).some(({ reason }) => reason === 'NO_SOURCE')
}

function isMeant(one: Known, { leastSeverity, onlyFixable }: VulnerabilityRule): boolean {
  if (one.state !== findingStates.vulnerable) return false
  const least = leastSeverity === '' ? undefined : severityLevels[lower(leastSeverity)]
  if (least !== undefined && severityRank(one.severity) < severityRank(least)) return false
  return !onlyFixable || fixesFor(one.component, one.affected, orderOf(one.component)).length > 0
}

/** Those that were found first long enough ago: what a source says anew of them does not make them younger. */
async function oldEnough(
  app: Work['app'],
  found: readonly Known[],
  { afterDays }: VulnerabilityRule,
  { place, now }: { place: string; now: string },
): Promise<readonly Known[]> {
  const latest = plusDays(now, -afterDays)
  if (found.every(({ foundTime }) => foundTime <= latest)) return found
  const first = await firstFound(app, found, place)
  return found.filter((one) => first(one) <= latest)
}

/** From when on the first of them is meant by the rule. */
async function badSince(
  app: Work['app'],
  bad: readonly Known[],
  { afterDays }: VulnerabilityRule,
  place: string,
): Promise<string> {
  const times = bad.map(await firstFound(app, bad, place)).sort()
  return plusDays(times[0]!, afterDays)
}

/** When each of them was found first. */
async function firstFound(
  { db }: Work['app'],
  found: readonly Known[],
  place: string,
): Promise<(one: Known) => string> {
  const keyOf = (componentNo: number, recordId: string) => `${componentNo} ${recordId}`
  const first = new Map<string, string>()
  const components = found.map(({ component }) => component.componentNo)
  for (const { componentNo, recordId, foundTime } of await sightingsIn(db, components, [place])) {
    const key = keyOf(componentNo, recordId)
    if (foundTime < (first.get(key) ?? '~')) first.set(key, foundTime)
  }
  return ({ component, record, foundTime }) => first.get(keyOf(component.componentNo, record.id)) ?? foundTime
}

const plusDays = (time: string, days: number): string => new Date(Date.parse(time) + days * dayMs).toISOString()

async function exploitedOf(app: Work['app'], { onlyExploited }: VulnerabilityRule, ids: string[]): Promise<string[]> {
  if (!onlyExploited || ids.length === 0) return ids
  const ranks = await ranksOf(app, ids)
  return ids.filter((id) => ranks.get(id)?.exploited)
}

/** Such as `2 fixable vulnerabilities of severity high or worse`. */
function textOf({ leastSeverity, onlyFixable, onlyExploited, afterDays }: VulnerabilityRule, count: number): string {
  const kind = `${onlyExploited ? 'exploited ' : ''}${onlyFixable ? 'fixable ' : ''}`
  const worse = leastSeverity === 'CRITICAL' ? '' : ' or worse'
  const level = leastSeverity === '' ? '' : ` of severity ${lower(leastSeverity)}${worse}`
  const since = afterDays === 0 ? '' : ` found at least ${plural(afterDays, 'day')} ago`
  return `${count || 'no'} ${kind}${count === 1 ? 'vulnerability' : 'vulnerabilities'}${level}${since}`
}

const lower = (severity: Severity) => severity.toLowerCase() as Lowercase<Severity>
