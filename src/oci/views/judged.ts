// What rules say of a pull, for the visitor and for the event of the pull.
import { boundBy, Passing } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import type { PullRule } from '#domains/policy/pull-rules/pull-rules.model.ts'
import { durationText } from '#domains/policy/views/views.model.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { OciError } from '../errors.ts'
import type { Visit } from '../visit.ts'

/** Notes the judgement of a rule for the event. Throws `refusal`, or one of its own, where an enforced one denies. */
export function judgedBy(visit: Visit, rule: PullRule, denied: boolean, refusal?: OciError): void {
  visit.judged = [
    ...(visit.judged ?? []),
    { uid: rule.uid, name: rule.name, enforced: rule.mode !== 'OBSERVE', denied },
  ]
  if (denied && rule.mode !== 'OBSERVE') throw refusal ?? heldBack(rule)
}

function heldBack({ uid, name, age }: PullRule): OciError {
  const called = name === '' ? '' : ` "${name}"`
  const message = `a rule${called} holds back what has not been a tag for ${durationText(age.ms)}`
  return new OciError('DENIED', message, { detail: { rule: uid, minAge: durationText(age.ms) } })
}

/** Throws DENIED where a rule holds back what is pulled by its digest. */
export async function checkDigest(
  visit: Visit,
  repo: RepoRef,
  type: 'manifest' | 'blob',
  digest: string,
): Promise<void> {
  const bound = await boundBy(visit.call, repo)
  if (!bound) return
  for (const rules of [bound.enforced, bound.observed]) {
    const rule = rules.toSorted((a, b) => b.age.ms - a.age.ms)[0]
    if (!rule) continue
    const passing = new Passing(visit.call, repo, rules, bound.accepted)
    judgedBy(visit, rule, !(await passing[type](digest)))
  }
}
