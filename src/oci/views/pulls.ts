// Pulls by tag in a view, or by callers under a cooldown policy.

import { answerTag, type TagAnswer } from '#domains/policy/pull-rules/asked-tags.service.ts'
import type { Question, Served, Unresolved } from '#domains/policy/views/resolve.service.ts'
import { durationText, timePlus, type View } from '#domains/policy/views/views.model.ts'
import type { Pulled } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { OciError } from '../errors.ts'
import type { Headers } from '../respond.ts'
import type { Visit } from '../visit.ts'
import { judgedBy } from './checks.ts'

/**
 * Time and age at which to read the tag: those of the view, or the present without a view. Throws NAME_INVALID for a time in the
 * future.
 */
export function questionOf({ call }: Visit, { at, age }: Partial<Pick<View, 'at' | 'age'>> = {}): Question {
  const { now } = call.cause
  if (at !== undefined && at > now) {
    throw new OciError(
      'NAME_INVALID',
      `the time of the view must not be in the future: it is ${at}, and now is ${now}`,
      { detail: { at, now } },
    )
  }
  return { until: at ?? now, isNow: at === undefined, age }
}

/** `isAged` is true if a view or a cooldown policy selected the digest. */
export type PulledTag = Pulled & { headers?: Headers; isAged?: true }

/**
 * Manifest that the tag selects for this caller. Returns undefined if the tag does not exist. Throws if a policy denies the pull.
 */
export async function pullTagFor(visit: Visit, repo: RepoRef, tag: string): Promise<PulledTag | undefined> {
  const answer = await answerTag(visit.call, repo, tag, questionOf(visit, visit.view))
  const { pulled, question, served, rule, observed } = answer
  if (!pulled) {
    if (!served) return undefined
    const refusal = explainRefusal(tag, answer, served)
    if (answer.isRefused) judgedBy(visit, rule!, true, refusal)
    throw refusal ?? createUnknownTag(tag, 'the image of the tag was deleted during the pull; pull again')
  }
  if (rule) judgedBy(visit, rule, false)
  if (observed) judgedBy(visit, observed.rule, observed.denied)
  return served?.chosen ? { ...pulled, isAged: true, headers: createWarning(tag, question, served) } : pulled
}

/** Warning header if a newer assignment of the tag is held back. Otherwise returns no header. */
function createWarning(tag: string, { age }: Question, { chosen, latest, heldUntil }: Served): Headers {
  if (!age || latest.since === chosen.since) return {}
  const until = heldUntil === '' ? '' : `, which can be pulled from ${heldUntil}`
  const text = `minimum age ${durationText(age.ms)}: ${tag} is served as of ${chosen.since}; since ${latest.since} it points to ${latest.digest}${until}`
  return { warning: `299 - "${text}"` }
}

function createTooYoungDenial(tag: string, { chosen, latest, heldUntil }: Served): OciError {
  const until = heldUntil === '' ? '' : `; it can be pulled from ${heldUntil}`
  const young = `${tag} has pointed to ${latest.digest} only since ${latest.since}${until}`
  const message = `a cooldown policy denies the pull: ${young}. The newest image that can be pulled is ${chosen.digest}`
  const detail = { tag, digest: latest.digest, ...(heldUntil && { time: heldUntil }), eligible: chosen.digest }
  return new OciError('DENIED', message, { detail })
}

/**
 * Error if no image can be pulled. Returns undefined if another error applies: a cooldown policy denies the pull, or the image
 * was just deleted.
 */
function explainRefusal(
  tag: string,
  { question, isRefused, next }: TagAnswer,
  served: Served | Unresolved,
): OciError | undefined {
  const { until, isNow, age } = question
  if (served.chosen) return isRefused && isNow ? createTooYoungDenial(tag, served) : undefined
  if (served.why === 'no tag') return createUnknownTag(tag, `the tag did not exist at ${until}`)
  if (served.why === 'deleted') {
    const { time, digest } = served
    return createUnknownTag(tag, `the tag was deleted at ${time}`, { deleteTime: time, digest })
  }
  const { digest, since } = served.latest
  if (served.why === 'gone') {
    const message = `the tag pointed to ${digest} since ${since}, but the repository does not have that image now`
    return createUnknownTag(tag, message, { digest })
  }
  const first = { digest: next?.digest ?? digest, time: next?.eligible ?? timePlus(since, age!.ms) }
  const span = durationText(age!.ms)
  const message = `no image has had the tag ${tag} for ${span} yet; ${first.digest} can be pulled from ${first.time}`
  return new OciError('DENIED', message, { detail: { tag, digest: first.digest, time: first.time } })
}

function createUnknownTag(tag: string, message: string, detail: object = {}): OciError {
  return new OciError('MANIFEST_UNKNOWN', message, { detail: { tag, ...detail } })
}
