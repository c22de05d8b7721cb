// Resolves a tag for a caller: in a view, under the caller's cooldown policies, or both. Used by pulls, lists and explanations.
import type { Work } from '#app.ts'
import { isStatement } from '#domains/registry/manifests/manifest-document.ts'
import { type Pulled, pullFound, pullTag } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import {
  type Explanation,
  explain,
  type Question,
  type Resolved,
  resolveTag,
  type Served,
  type Unresolved,
} from '../views/resolve.service.ts'
import type { Skipped } from '../views/views.model.ts'
import { type Bound, boundBy, Passing, together } from './bound-pulls.service.ts'
import { type PullRule, strictest } from './pull-rules.model.ts'

/** Question about a tag, combined from a view and a cooldown policy. */
export type Asked = { question: Question; rule: PullRule | undefined }

/** Combines a view with the strictest cooldown policy for the tag. Policies apply only to requests for the present. */
export function withCooldown(question: Question, bound: Bound | undefined, tag: string): Asked {
  const rule = bound && strictest(bound.enforced, tag)
  if (!rule || !question.isNow) return { question, rule }
  const { age } = question
  const both = age ? together(age, rule.age) : rule.age
  return { question: { ...question, age: both, accepted: age ? [] : bound.accepted }, rule }
}

/**
 * Pulls a signature or another referrer by its tag. It is resolved as of now in every view, because it is pushed after its
 * subject and can warn of it. Returns undefined if the tag is not about a digest, or if a policy denies the pull.
 */
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

/** Result of a pull by tag. Either `pulled` has a manifest, or the other members have the reason why there is none. */
export type TagAnswer = {
  question: Question
  pulled: Pulled | undefined
  /** Result from the tag history. Missing if the tag is resolved as of now without a view or policy. */
  served?: Served | Unresolved
  /** If no digest is old enough yet, the digest that will be old enough first. */
  next?: Skipped | undefined
  /** Enforced cooldown policy for the tag. `isRefused` is true if the policy denies the pull. */
  rule?: PullRule | undefined
  isRefused?: boolean
  /** Cooldown policy in mode OBSERVE for the tag. `denied` is true if an enforced policy would deny the pull. */
  observed?: { rule: PullRule; denied: boolean } | undefined
}

/** Pulls a tag, resolved by the view of the request and by the cooldown policies for the caller. */
export async function answerTag(work: Work, repo: RepoRef, tag: string, viewed: Question): Promise<TagAnswer> {
  const bound = await boundBy(work, repo)
  const isPlain = !bound && viewed.isNow && !viewed.age
  if (isPlain) return { question: viewed, pulled: await pullTag(work, repo, tag) }
  const asked = withCooldown(viewed, bound, tag)
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

/**
 * Explanation of a resolved tag. `refuses` is true if the policy denies pulls by the tag, even if an older digest could be
 * served.
 */
export type Explained = Explanation & {
  question: Question
  resolved: Resolved
  rule: (PullRule & { refuses: boolean }) | undefined
}

/** Explains to which digest a pull of the tag resolves, without pulling it. */
export async function explainTag(
  work: Work,
  repo: RepoRef,
  tag: string,
  viewed: Question,
  bound: Bound | undefined,
): Promise<Explained> {
  const { db } = work.app
  const asked = withCooldown(viewed, bound, tag)
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

type Answer = { chosen?: { digest: string } | undefined; latest?: { digest: string }; why?: Unresolved['why'] }

/**
 * True if the policy denies a pull by the tag, whatever digest the tag resolves to. `passes` returns true if the policies allow
 * pulls of a digest.
 */
export async function isRefused(
  { question, rule }: Asked,
  { chosen, latest, why }: Answer,
  passes: (digest: string) => Promise<boolean>,
): Promise<boolean> {
  if (!rule || rule.mode === 'OBSERVE') return false
  // For a time in the past, the tag history has too little information for a policy. So the policy checks only the resolved
  // digest.
  if (!question.isNow) return chosen !== undefined && !(await passes(chosen.digest))
  if (!chosen) return why === 'young'
  return rule.mode === 'DENY' && chosen.digest !== latest?.digest
}
