// Checks of a pull: cooldown policies, quarantine and admission policies. The verdicts are also part of the pull event.

import { gatesOf, type Outcome } from '#domains/policy/gates/outcomes.service.ts'
import { boundBy, Passing } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import type { PullRule } from '#domains/policy/pull-rules/pull-rules.model.ts'
import { quarantinedAs, type Wanted } from '#domains/policy/retention/quarantine.service.ts'
import { sunsetOf } from '#domains/policy/retention/retention-locks.service.ts'
import { durationText } from '#domains/policy/views/views.model.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { mayPush } from '../access.ts'
import { OciError } from '../errors.ts'
import type { Headers } from '../respond.ts'
import type { Visit } from '../visit.ts'

/**
 * Adds the verdict of a cooldown policy to the pull event. If an enforced policy denies the pull, throws `refusal`, or a default
 * error without `refusal`.
 */
export function judgedBy(visit: Visit, rule: PullRule, denied: boolean, refusal?: OciError): void {
  visit.judged = [
    ...(visit.judged ?? []),
    { uid: rule.uid, name: rule.name, enforced: rule.mode !== 'OBSERVE', denied },
  ]
  if (denied && rule.mode !== 'OBSERVE') throw refusal ?? createCooldownDenial(rule)
}

function createCooldownDenial({ uid, name, age }: PullRule): OciError {
  const policy = name === '' ? 'a cooldown policy' : `the cooldown policy "${name}"`
  const reason = `the image has not had a tag for ${durationText(age.ms)} yet`
  const message = `${policy} denies the pull: ${reason}; pull an older image, or ask an owner for an exemption`
  return new OciError('DENIED', message, { detail: { rule: uid, minAge: durationText(age.ms) } })
}

/** Throws DENIED if an enforced cooldown policy holds back the content with this digest. Adds the verdicts to the pull event. */
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

/**
 * Throws DENIED with the reason if the digest is quarantined. Also throws DENIED for a digest that only quarantined manifests
 * contain.
 */
export async function requireClean({ call }: Visit, repo: RepoRef, wanted: Wanted): Promise<void> {
  const mark = await quarantinedAs(call, repo, wanted)
  if (!mark) return
  const { digest, reason, createTime } = mark
  const detail = { digest, reason, quarantined: createTime }
  const what = digest === wanted.digest ? digest : `${wanted.digest} belongs to ${digest}, which`
  const help = 'Pull another image, or ask an owner to release it from quarantine'
  throw new OciError('DENIED', `${what} is in quarantine, so it cannot be pulled: ${reason}. ${help}`, { detail })
}

const toldBeforeMs = 30 * 86_400_000

/**
 * Headers for content without a tag that a retention policy keeps until a date. `Sunset` (RFC 8594) has the date. In the last 30
 * days, a warning is added.
 */
export async function headersOfEnd({ call }: Visit, repo: RepoRef, digest: string): Promise<Headers> {
  const until = await sunsetOf(call, repo, digest)
  if (until === undefined) return {}
  const sunset = new Date(until).toUTCString()
  const isNear = Date.parse(until) - Date.parse(call.cause.now) <= toldBeforeMs
  return {
    sunset,
    ...(isNear ? { warning: `299 - "no tag points to ${digest}; it can be deleted after ${until}"` } : {}),
  }
}

/** Adds the verdict of each admission policy to the pull event. Throws DENIED if an enforced policy denies the pull. */
export async function requireGates(visit: Visit, repo: RepoRef, digest: string): Promise<void> {
  // Scanners must be able to scan an image again, even if an admission policy denies its pull because of earlier findings.
  if (visit.call.caller.token?.scanner !== undefined) return
  const { outcomes, refusing } = await gatesOf(visit.call, repo, digest)
  if (outcomes.length === 0) return
  const judged = outcomes.map(({ gate, denied, failed }) => {
    return { uid: gate.uid, name: gate.name, enforced: gate.enforced, denied, ...(failed && { failed }) }
  })
  visit.judged = [...(visit.judged ?? []), ...judged]
  // Before a push, clients send HEAD for the tag. This must work even if the current image is denied.
  const isLook = visit.req.method === 'HEAD' && mayPush(visit, repo.uid)
  if (refusing && !isLook) throw createPolicyDenial(refusing, repo, digest)
}

function createPolicyDenial({ gate, reason, count }: Outcome, { path }: RepoRef, digest: string): OciError {
  const exempt = `pinfold policies admission exemptions create ${digest} --in ${path} --reason TEXT --until DATE`
  const help = `Pull another image, or ask an owner for an exemption: ${exempt}`
  const message = `the admission policy ${gate.name} denies ${digest}: ${reason}. ${help}`
  const detail = { digest, gate: gate.uid, name: gate.name, reason, ...(count > 0 && { count }) }
  return new OciError('DENIED', message, { detail })
}
