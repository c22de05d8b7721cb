// What a tag gives whoever asks for it: in a view, as the rules that bind them let them, or both. Pulls, lists and explanations go by
// this.
import type { Work } from '#app.ts'
import { isStatement } from '#domains/registry/manifests/manifest-document.ts'
import { type Pulled, pullTag } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repos/repos.model.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import {
  type Explanation,
  explain,
  type Nothing,
  type Question,
  type Resolved,
  resolveTag,
} from '../views/resolve.service.ts'
import { type Bound, Passing, together } from './bound-pulls.service.ts'
import { type PullRule, strictest } from './pull-rules.model.ts'

/** What is asked of a tag by a view and a rule together. */
export type Asked = { question: Question; rule: PullRule | undefined }

/** The question of the view, or that of now, with what the rule adds; a rule is always about now. */
export function askedOf(question: Question, bound: Bound | undefined, tag: string): Asked {
  const rule = bound && strictest(bound.enforced, tag)
  if (!rule || !question.isNow) return { question, rule }
  const { age } = question
  const both = age ? together(age, rule.age) : rule.age
  return { question: { ...question, age: both, accepted: age ? [] : bound.accepted }, rule }
}

/** Signatures and the like come after what they are about, and may say of it that it is bad: they are of now. */
export async function pullStatement(
  work: Work,
  repo: RepoRef,
  tag: string,
  { question, rule }: Asked,
  passing: Passing | undefined,
): Promise<Pulled | undefined> {
  if (digestAbout(tag) === undefined) return undefined
  const pulled = await pullTag(work, repo, tag)
  if (!pulled) return undefined
  if (rule)
    return isStatement(pulled.manifest) && (await passing!.tag(pulled.manifest.digest, tag)) ? pulled : undefined
  return !question.age || isStatement(pulled.manifest) ? pulled : undefined
}

/** `refuses`: the rule lets nothing be pulled by the tag, though there may be something else to choose. */
export type Explained = Explanation & { resolved: Resolved; rule: (PullRule & { refuses: boolean }) | undefined }

/** What a pull by the tag gives, and why, without pulling anything. */
export async function explainAsked(
  work: Work,
  repo: RepoRef,
  tag: string,
  asked: Asked,
  bound: Bound | undefined,
): Promise<Explained> {
  const { db } = work.app
  const passing = bound && new Passing(work, repo, bound.enforced, bound.accepted)
  const isOfNow = (await pullStatement(work, repo, tag, asked, passing)) !== undefined
  const question = isOfNow ? { until: work.cause.now, isNow: true, age: undefined } : asked.question
  const resolved = await resolveTag(db, repo, tag, question)
  const explanation = await explain(db, repo, tag, question, resolved)
  const { rule } = asked
  if (!rule) return { ...explanation, resolved, rule }
  const passes = (digest: string) => passing!.tag(digest, tag)
  const refuses = !isOfNow && (await isRefused(asked, resolved, passes))
  return { ...explanation, resolved, rule: { ...rule, refuses } }
}

type Answer = { chosen?: { digest: string } | undefined; latest?: { digest: string }; why?: Nothing['why'] }

/** Whether the rule refuses a pull by the tag, whatever it stands for. `passes` says whether a digest may be pulled by it. */
export async function isRefused(
  { question, rule }: Asked,
  { chosen, latest, why }: Answer,
  passes: (digest: string) => Promise<boolean>,
): Promise<boolean> {
  if (!rule || rule.mode === 'OBSERVE') return false
  // Of a moment that is past, the ledger knows less than a rule has to.
  if (!question.isNow) return chosen !== undefined && !(await passes(chosen.digest))
  if (!chosen) return why === 'young'
  return rule.mode === 'DENY' && chosen.digest !== latest?.digest
}
