// Checks a manifest against one admission policy, using stored data only. An image is allowed while information on it is still
// missing.
import type { Work } from '#app.ts'
import { type Support, supportOf } from '#domains/registry/lifecycles/lifecycles.service.ts'
import { wasPulledBetween } from '#domains/registry/usage/recent-pulls.service.ts'
import { hasCooled } from '../pull-rules/bound-pulls.service.ts'
import { type DatedVerdict, fails, type Gate, passes, plural, type Verdict, waits } from './gates.model.ts'
import { judgeVulnerabilities } from './judge-vulnerabilities.service.ts'

/** Repository for which policies are checked. */
export type GatedRepo = Parameters<typeof hasCooled>[1]

const dayMs = 86_400_000

export async function judge(work: Work, repo: GatedRepo, digest: string, gate: Gate): Promise<Verdict> {
  const { since, ...verdict } = await judgeRule(work, repo, digest, gate)
  const days = gate.exemptPulledDays
  if (!verdict.denied || days === 0 || !since) return verdict
  const { app, cause } = work
  // Only pulls from before the image violated the policy can exempt it.
  const span = { from: new Date(Date.parse(cause.now) - days * dayMs).toISOString(), until: await since() }
  if (!(await wasPulledBetween(app.db, { repo: repo.id, digest }, span))) return verdict
  const exempt = `allowed because it was pulled in the last ${plural(days, 'day')}, before the policy denied it`
  return { ...verdict, denied: false, reason: `${verdict.reason}; ${exempt}` }
}

async function judgeRule(work: Work, repo: GatedRepo, digest: string, { rule }: Gate): Promise<DatedVerdict> {
  const { db } = work.app
  const { now } = work.cause
  switch (rule.kind) {
    case 'vulnerabilities':
      return judgeVulnerabilities(work, repo, digest, rule)
    case 'cooldown': {
      const age = plural(rule.minAgeDays, 'day')
      if (await hasCooled(work, repo, digest, rule.minAgeDays)) return passes(`it has had a tag for ${age}`)
      return fails(`it has not had a tag for ${age} yet`)
    }
    case 'endOfLife':
      return judgeLife(await supportOf(db, repo, digest, now))
    case 'supportWindow':
      return judgeWindow(await supportOf(db, repo, digest, now), rule.minMonthsLeft, now)
  }
}

type Known = Support | 'unknown' | undefined

function judgeLife(support: Known): DatedVerdict {
  return judgeSupport(support, ({ line, over, overSince }) => {
    if (!over) return passes(`${line} is supported`)
    return fails(`${line} is past its end of life`, overSince === '' ? {} : { since: () => overSince })
  })
}

function judgeWindow(support: Known, months: number, now: string): DatedVerdict {
  const span = plural(months, 'month')
  return judgeSupport(support, ({ line, eolDate, ended }) => {
    const began = eolDate === '' ? {} : { since: () => plusMonths(eolDate, -months) }
    if (ended) return fails(`${line} is past its end of life, and must have ${span} left`, began)
    if (eolDate === '') return passes(`the end of life of ${line} is unknown`)
    if (eolDate >= plusMonths(now, months)) return passes(`the end of life of ${line} is on ${eolDate}`)
    return fails(`the end of life of ${line} is on ${eolDate}, in less than ${span}`, began)
  })
}

function judgeSupport(support: Known, of: (known: Support) => DatedVerdict): DatedVerdict {
  if (support === undefined) return waits('its product has not been determined yet')
  if (support === 'unknown') return passes('it is not a release of a known product')
  return of(support)
}

/** Date that is `months` later than `time`, or earlier if the number is negative. */
function plusMonths(time: string, months: number): string {
  const day = new Date(time)
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + months, day.getUTCDate()))
    .toISOString()
    .slice(0, 10)
}
