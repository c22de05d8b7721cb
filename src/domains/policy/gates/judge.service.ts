// What the rule of a gate says of a manifest, from what was found out before: nothing is read or compared for it, and what
// waits for that passes.
import type { Work } from '#app.ts'
import { supportOf } from '#domains/registry/lifecycles/support.service.ts'
import { wasPulledBetween } from '#domains/registry/usage/recent-pulls.service.ts'
import { hasCooled } from '../pull-rules/cooled.service.ts'
import type { Gate, Verdict } from './gates.model.ts'
import { judgeLife, judgeWindow } from './judge-support.service.ts'
import { judgeVulnerabilities } from './judge-vulnerabilities.service.ts'
import { fails, type Judged, passes, plural } from './verdicts.model.ts'

/** A repo as the registry knows it. */
export type GatedRepo = Parameters<typeof hasCooled>[1]

const dayMs = 86_400_000

export async function judge(work: Work, repo: GatedRepo, digest: string, gate: Gate): Promise<Verdict> {
  const { since, ...verdict } = await judgeRule(work, repo, digest, gate)
  const days = gate.exemptPulledDays
  if (!verdict.denied || days === 0 || !since) return verdict
  const { app, cause } = work
  // What is pulled while it should not be, or while nobody knew, does not count.
  const span = { from: new Date(Date.parse(cause.now) - days * dayMs).toISOString(), until: await since() }
  if (!(await wasPulledBetween(app.db, { repo: repo.id, digest }, span))) return verdict
  const exempt = `it was pulled in the last ${plural(days, 'day')}, before that was so`
  return { ...verdict, denied: false, reason: `${verdict.reason}; ${exempt}` }
}

async function judgeRule(work: Work, repo: GatedRepo, digest: string, { rule }: Gate): Promise<Judged> {
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
      return judgeLife(await supportOf(db, repo, digest, now))
    case 'supportWindow':
      return judgeWindow(await supportOf(db, repo, digest, now), rule.minMonthsLeft, now)
  }
}
