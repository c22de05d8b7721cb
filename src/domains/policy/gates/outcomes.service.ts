// Results of all admission policies of a scope for a manifest, including exemptions.
import type { Work } from '#app.ts'
import { indexesWith } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import type { DigestException, RulesInForce } from '#domains/rules/rules.model.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import type { Gate, Verdict } from './gates.model.ts'
import { type GatedRepo, judge } from './judge.service.ts'

/**
 * Result of one policy. `exception` is the uid of the exemption that allows the image. `failed` is true if the policy could not
 * be evaluated.
 */
export type Outcome = Verdict & {
  gate: Pick<Gate, 'uid' | 'name' | 'scopeUid'> & { kind: Gate['rule']['kind']; enforced: boolean }
  failed: boolean
  exception: string
}

/** Results of all active policies for a manifest. Empty if there are no policies. */
export async function outcomesOf(work: Work, repo: GatedRepo, digest: string): Promise<Outcome[]> {
  const { app } = work
  if (app.gates.isEmpty()) return []
  const known = await app.gates.of(rootOf(repo.uid))
  const gates = known?.rules.filter(({ scopeUid }) => isAtOrBelow(repo.uid, scopeUid)) ?? []
  const outcomes: Outcome[] = []
  let exception: Promise<string> | undefined
  for (const gate of gates) {
    const outcome = await outcomeOf(work, repo, digest, gate)
    if (!outcome.denied) {
      outcomes.push(outcome)
      continue
    }
    exception ??= exceptionFor(work, repo, digest, known!)
    const uid = await exception
    outcomes.push(uid === '' ? outcome : { ...outcome, denied: false, exception: uid })
  }
  return outcomes
}

/** Evaluates one policy. An error does not affect other policies or the pull. */
async function outcomeOf(work: Work, repo: GatedRepo, digest: string, gate: Gate): Promise<Outcome> {
  const { uid, name, scopeUid, rule, mode } = gate
  const shown = { uid, name, scopeUid, kind: rule.kind, enforced: mode === 'ENFORCE' }
  try {
    // The key contains the rule, because another server may have changed the policy.
    const key = JSON.stringify([repo.id, digest, uid, rule, gate.exemptPulledDays])
    const verdict = await work.app.gates.verdict(key, () => judge(work, repo, digest, gate))
    return { ...verdict, gate: shown, failed: false, exception: '' }
  } catch (error) {
    work.app.metrics.gateErrors.inc()
    work.log.error('admission policy could not be checked', { gate: uid, repo: repo.uid, digest, error })
    const none = { denied: false, count: 0, pending: false, exception: '', unknownSeverity: 0 }
    return {
      ...none,
      gate: shown,
      failed: true,
      reason: 'the policy could not be checked, because of an error in the server',
    }
  }
}

/** Uid of the exemption for the digest, or for an index that lists the digest. Empty if there is none. */
export async function exceptionFor(
  { app, cause }: Work,
  repo: GatedRepo,
  digest: string,
  { exceptions }: RulesInForce<Gate>,
): Promise<string> {
  const live = exceptions.filter(({ scopeUid, expireTime }) => {
    return isAtOrBelow(repo.uid, scopeUid) && expireTime > cause.now
  })
  if (live.length === 0) return ''
  const of = (one: string): DigestException | undefined => live.find((exception) => exception.digest === one)
  const own = of(digest)
  if (own) return own.uid
  const above = await indexesWith(app.db, repo.id, digest)
  return above.map((index) => of(index)?.uid ?? '').find((uid) => uid !== '') ?? ''
}

/**
 * Results of all policies of the scope, and the first policy that denies the pull. Does not query the database if there are no
 * policies.
 */
export async function gatesOf(
  work: Work,
  repo: RepoRef,
  digest: string,
): Promise<{ outcomes: readonly Outcome[]; refusing: Outcome | undefined }> {
  const outcomes = await outcomesOf(work, repo, digest)
  return { outcomes, refusing: outcomes.find(({ gate, denied }) => gate.enforced && denied) }
}
