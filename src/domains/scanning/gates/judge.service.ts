// What the rule of a gate says of a manifest, from what was found out before: nothing is read or compared for it, and what
// waits for that passes.
import type { Work } from '#app.ts'
import { fixesFor } from '#contents/match.ts'
import { contentsOf } from '#domains/registry/images/image-contents.service.ts'
import { type Support, supportOf } from '#domains/registry/lifecycles/support.service.ts'
import { hasCooled } from '#domains/registry/pull-rules/cooled.service.ts'
import { wasPulledWithin } from '#domains/registry/usage/recent-pulls.service.ts'
import { rootOf } from '#lib/uid.ts'
import { countedAt, heldAt, type Known } from '../known/known.model.ts'
import { findKnownNow, sightingsIn } from '../known/known.store.ts'
import { ecosystemsOfList, findList } from '../lists/lists.store.ts'
import { findingStates } from '../matching/findings.model.ts'
import { orderOf } from '../matching/matching.service.ts'
import { severityRank } from '../matching/severity.model.ts'
import { ranksOf } from '../ranks/ranks.service.ts'
import { severityLevels } from '../records/records.model.ts'
import { listReads } from '../records/records.store.ts'
import { coverageOf } from '../reports/coverage.service.ts'
import { withAccepted } from '../risks/accepted.service.ts'
import type { Gate, Severity, Verdict, VulnerabilityRule } from './gates.model.ts'

/** A repo as the registry knows it. */
export type GatedRepo = Parameters<typeof hasCooled>[1]

/** Findings of one image that are looked at, the worst first. */
const mostFindings = 5000
const dayMs = 86_400_000

const passes = (reason: string): Verdict => ({ denied: false, reason, count: 0, pending: false })
const waits = (reason: string): Verdict => ({ denied: false, reason, count: 0, pending: true })
const fails = (reason: string, count = 0): Verdict => ({ denied: true, reason, count, pending: false })

export async function judge(work: Work, repo: GatedRepo, digest: string, gate: Gate): Promise<Verdict> {
  const verdict = await judgeRule(work, repo, digest, gate)
  const days = gate.exemptPulledDays
  if (!verdict.denied || days === 0) return verdict
  const { app, cause } = work
  const asked = { repo: repo.id, digest, now: cause.now }
  if (!(await wasPulledWithin(app.db, asked, days))) return verdict
  return { ...verdict, denied: false, reason: `${verdict.reason}; it was pulled in the last ${plural(days, 'day')}` }
}

async function judgeRule(work: Work, repo: GatedRepo, digest: string, { rule }: Gate): Promise<Verdict> {
  const { db } = work.app
  const { now } = work.cause
  switch (rule.kind) {
    case 'vulnerabilities':
      return judgeVulnerabilities(work, repo, digest, rule)
    case 'cooldown': {
      const age = plural(rule.minAgeDays, 'day')
      if (await hasCooled(work, repo, digest, rule.minAgeDays)) return passes(`it has been a tag for ${age}`)
      return fails(`it has not been a tag for ${age}`)
    }
    case 'endOfLife':
      return judgeSupport(await supportOf(db, repo, digest, now), ({ line, over }) =>
        over ? fails(`${line} has come to the end of its life`) : passes(`${line} is supported`),
      )
    case 'supportWindow':
      return judgeSupport(await supportOf(db, repo, digest, now), (support) =>
        judgeWindow(support, rule.minMonthsLeft, now),
      )
  }
}

function judgeSupport(support: Support | 'unknown' | undefined, of: (known: Support) => Verdict): Verdict {
  if (support === undefined) return waits('nobody has looked yet which product it is about')
  if (support === 'unknown') return passes('it is about no line of a product that is known')
  return of(support)
}

function judgeWindow({ line, eolDate, ended }: Support, months: number, now: string): Verdict {
  const span = plural(months, 'month')
  if (ended) return fails(`${line} has come to the end of its life, and is to have ${span} left`)
  if (eolDate === '') return passes(`nobody knows when the life of ${line} ends`)
  const today = new Date(now)
  const until = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + months, today.getUTCDate()))
  if (eolDate >= until.toISOString().slice(0, 10)) return passes(`the life of ${line} ends on ${eolDate}`)
  return fails(`the life of ${line} ends on ${eolDate}, which is in less than ${span}`)
}

async function judgeVulnerabilities(
  { app, cause }: Work,
  repo: GatedRepo,
  digest: string,
  rule: VulnerabilityRule,
): Promise<Verdict> {
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
  const all = await findKnownNow(db, list.listNo, [rootOf(repo.uid)], mostFindings)
  const meant = await oldEnough(
    app,
    all.filter((one) => isMeant(one, rule)),
    rule,
    { repo, now: cause.now },
  )
  const known = await withAccepted(db, meant, [{ repoUid: repo.uid, digest }], distribution.id)
  const ids = await exploitedOf(app, rule, [...new Set(known.flatMap((one) => countedAt(one, cause.now)))])
  const what = textOf(rule, ids.length)
  if (ids.length > 0) return fails(`it has ${what}`, ids.length)
  const silent = strict && (await isSilent(app, list.listNo, all, cause.now))
  if (silent) return fails('of some of its packages nobody says whether they are vulnerable')
  return incomplete ?? passes(`it has ${what}`)
}

/** Whether no source speaks of some packages of a list, or only in versions that cannot be compared. */
async function isSilent({ db, config }: Work['app'], listNo: number, found: readonly Known[], now: string) {
  if (found.some((one) => one.state === findingStates.unknown && heldAt(one, now))) return true
  const ecosystems = await ecosystemsOfList(db, listNo)
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
  { db }: Work['app'],
  found: readonly Known[],
  { afterDays }: VulnerabilityRule,
  { repo, now }: { repo: GatedRepo; now: string },
): Promise<readonly Known[]> {
  const latest = new Date(Date.parse(now) - afterDays * dayMs).toISOString()
  const young = found.filter(({ foundTime }) => foundTime > latest)
  if (young.length === 0) return found
  const components = young.map(({ component }) => component.componentNo)
  const keyOf = (componentNo: number, recordId: string) => `${componentNo} ${recordId}`
  const old = new Set<string>()
  for (const { componentNo, recordId, foundTime } of await sightingsIn(db, components, [rootOf(repo.uid)])) {
    if (foundTime <= latest) old.add(keyOf(componentNo, recordId))
  }
  return found.filter(({ component, record, foundTime }) => {
    return foundTime <= latest || old.has(keyOf(component.componentNo, record.id))
  })
}

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

const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`
