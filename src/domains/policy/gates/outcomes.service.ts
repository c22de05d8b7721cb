// What the gates of a place say of a manifest: their rules, and what is excepted from them.
import type { Work } from '#app.ts'
import { indexesWith } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import type { DigestException, RulesInForce } from '#domains/rules/rules.model.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import type { Gate, Verdict } from './gates.model.ts'
import { type GatedRepo, judge } from './judge.service.ts'

/** `exception`: what lets it through although its rule does not. `failed`: nobody can say. */
export type Outcome = Verdict & {
  gate: Pick<Gate, 'uid' | 'name' | 'scopeUid'> & { kind: Gate['rule']['kind']; enforced: boolean }
  failed: boolean
  exception: string
}

/** None where no gate holds that is on, as on a server without any. */
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

/** What goes wrong in one gate hides neither the others nor what is pulled. */
async function outcomeOf(work: Work, repo: GatedRepo, digest: string, gate: Gate): Promise<Outcome> {
  const { uid, name, scopeUid, rule, mode } = gate
  const shown = { uid, name, scopeUid, kind: rule.kind, enforced: mode === 'ENFORCE' }
  try {
    // Another server may have changed the gate.
    const key = JSON.stringify([repo.id, digest, uid, rule, gate.exemptPulledDays])
    const verdict = await work.app.gates.verdict(key, () => judge(work, repo, digest, gate))
    return { ...verdict, gate: shown, failed: false, exception: '' }
  } catch (error) {
    work.app.metrics.gateErrors.inc()
    work.log.error('gate could not be asked', { gate: uid, repo: repo.uid, digest, error })
    const none = { denied: false, count: 0, pending: false, exception: '', unknownSeverity: 0 }
    return { ...none, gate: shown, failed: true, reason: 'the gate could not be asked' }
  }
}

/** The uid of what lets it through, or an index that lists it; empty where nothing does. */
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

/** What each gate of the place says, and the first that refuses. Nothing is asked of the database where there is no gate. */
export async function gatesOf(
  work: Work,
  repo: RepoRef,
  digest: string,
): Promise<{ outcomes: readonly Outcome[]; refusing: Outcome | undefined }> {
  const outcomes = await outcomesOf(work, repo, digest)
  return { outcomes, refusing: outcomes.find(({ gate, denied }) => gate.enforced && denied) }
}
