// What a tag gives whoever asks for it: in a view, as the rules that bind them let them, or both. Pulls, lists and explanations go by
// this.
import type { Work } from '#app.ts'
import { isStatement } from '#domains/registry/manifests/manifest-document.ts'
import { type Pulled, pullFound, pullTag } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import {
  type Explanation,
  explain,
  type Nothing,
  type Question,
  type Resolved,
  resolveTag,
  type Served,
} from '../views/resolve.service.ts'
import type { Skipped } from '../views/views.model.ts'
import { type Bound, boundBy, Passing, together } from './bound-pulls.service.ts'
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

/** The result of a pull by a tag: either a manifest in `pulled`, or the reasons why there is none. */
export type TagAnswer = {
  question: Question
  pulled: Pulled | undefined
  /** The answer of the tag history; absent if the tag is pulled as it is now. */
  served?: Served | Nothing
  /** The digest that is old enough next, if none is yet. */
  next?: Skipped | undefined
  /** The enforced policy for the tag, and whether it refuses the pull. */
  rule?: PullRule | undefined
  isRefused?: boolean
  /** The observing policy for the tag, and whether it would refuse the pull. */
  observed?: { rule: PullRule; denied: boolean } | undefined
}

/** Pulls a tag by the question of a view, or that of now, and by the cooldown policies for the caller. */
export async function answerTag(work: Work, repo: RepoRef, tag: string, viewed: Question): Promise<TagAnswer> {
  const bound = await boundBy(work, repo)
  const isPlain = !bound && viewed.isNow && !viewed.age
  if (isPlain) return { question: viewed, pulled: await pullTag(work, repo, tag) }
  const asked = askedOf(viewed, bound, tag)
  const passing = bound && new Passing(work, repo, bound.enforced, bound.accepted)
  const statement = await pullStatement(work, repo, tag, asked, passing)
  const answer = statement ? { ...asked, pulled: statement } : await pullAged(work, repo, tag, asked, passing)
  const rule = bound && strictest(bound.observed, tag)
  if (!answer.pulled || !rule) return answer
  const observing = new Passing(work, repo, bound.observed, bound.accepted)
  return { ...answer, observed: { rule, denied: !(await observing.tag(answer.pulled.manifest.digest, tag)) } }
}

async function pullAged(
  work: Work,
  repo: RepoRef,
  tag: string,
  asked: Asked,
  passing: Passing | undefined,
): Promise<TagAnswer> {
  const { app } = work
  const served = await app.views.of(repo, tag, asked.question)
  const refuses = await isRefused(asked, served, (digest) => passing!.tag(digest, tag))
  const answer = { ...asked, served, isRefused: refuses, pulled: undefined }
  if (served.chosen) return refuses ? answer : { ...answer, pulled: await pullFound(work, repo, served.chosen) }
  if (served.why !== 'young') return answer
  return { ...answer, next: (await explain(app.db, repo, tag, asked.question, served)).next }
}

/** `refuses`: the rule lets nothing be pulled by the tag, though there may be something else to choose. */
export type Explained = Explanation & {
  question: Question
  resolved: Resolved
  rule: (PullRule & { refuses: boolean }) | undefined
}

/** What a pull by the tag gives, and why, without pulling anything. */
export async function explainAsked(
  work: Work,
  repo: RepoRef,
  tag: string,
  viewed: Question,
  bound: Bound | undefined,
): Promise<Explained> {
  const { db } = work.app
  const asked = askedOf(viewed, bound, tag)
  const passing = bound && new Passing(work, repo, bound.enforced, bound.accepted)
  const isOfNow = (await pullStatement(work, repo, tag, asked, passing)) !== undefined
  const question = isOfNow ? { until: work.cause.now, isNow: true, age: undefined } : asked.question
  const resolved = await resolveTag(db, repo, tag, question)
  const explanation = await explain(db, repo, tag, question, resolved)
  const { rule } = asked
  const explained = { ...explanation, question: asked.question, resolved }
  if (!rule) return { ...explained, rule }
  const passes = (digest: string) => passing!.tag(digest, tag)
  const refuses = !isOfNow && (await isRefused(asked, resolved, passes))
  return { ...explained, rule: { ...rule, refuses } }
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
