// Pulls by tag that are not plain ones: in a view of the repository, or by somebody whom a rule holds back from what is
// too young.

import { type Asked, askedOf, isRefused, pullStatement } from '#domains/policy/pull-rules/asked-tags.service.ts'
import { boundBy, Passing } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import { strictest } from '#domains/policy/pull-rules/pull-rules.model.ts'
import { explain, type Nothing, type Question, type Served } from '#domains/policy/views/resolve.service.ts'
import { durationText, timePlus, type View } from '#domains/policy/views/views.model.ts'
import { type Pulled, pullFound, pullTag } from '#domains/registry/manifests/manifests.service.ts'
import type { RepoRef } from '#domains/registry/repos/repos.model.ts'
import { OciError } from '../errors.ts'
import type { Headers } from '../respond.ts'
import type { Visit } from '../visit.ts'
import { judgedBy } from './judged.ts'

/** What the view says is asked, or without one, what is now. Throws NAME_INVALID where its moment has not come. */
export function questionOf({ call }: Visit, { at, age }: Partial<Pick<View, 'at' | 'age'>> = {}): Question {
  const { now } = call.cause
  if (at !== undefined && at > now) {
    throw new OciError('NAME_INVALID', `${at} has not come yet: it is ${now}`, { detail: { at, now } })
  }
  return { until: at ?? now, isNow: at === undefined, age }
}

/** `isAged`: it was chosen by its age or as of a moment. */
export type PulledTag = Pulled & { headers?: Headers; isAged?: true }

/** What the tag stands for, for this visitor; `undefined` where there is no such tag. Throws the reason for anything else. */
export async function pullTagFor(visit: Visit, repo: RepoRef, tag: string): Promise<PulledTag | undefined> {
  const { call, view } = visit
  const bound = await boundBy(call, repo)
  if (!bound && !view) return pullTag(call, repo, tag)
  const asked = askedOf(questionOf(visit, view), bound, tag)
  const passing = bound && new Passing(call, repo, bound.enforced, bound.accepted)
  const statement = await pullStatement(call, repo, tag, asked, passing)
  const pulled = statement ?? (await pullAged(visit, repo, tag, asked, passing))
  if (asked.rule) judgedBy(visit, asked.rule, false)
  const observing = bound && strictest(bound.observed, tag)
  if (observing) {
    const seen = new Passing(call, repo, bound.observed, bound.accepted)
    judgedBy(visit, observing, !(await seen.tag(pulled.manifest.digest, tag)))
  }
  return pulled
}

async function pullAged(
  visit: Visit,
  repo: RepoRef,
  tag: string,
  asked: Asked,
  passing: Passing | undefined,
): Promise<PulledTag> {
  const { question, rule } = asked
  const served = await visit.call.app.views.of(repo, tag, question)
  const isByRule = await isRefused(asked, served, (digest) => passing!.tag(digest, tag))
  if (!served.chosen) {
    const refusal = await refusalOf(visit, repo, tag, question, served)
    if (isByRule) judgedBy(visit, rule!, true, refusal)
    throw refusal
  }
  if (isByRule) judgedBy(visit, rule!, true, question.isNow ? tooYoung(tag, served) : undefined)
  const pulled = await pullFound(visit.call, repo, served.chosen)
  if (!pulled) throw unknownTag(tag, 'what the tag stood for has just been deleted')
  return { ...pulled, isAged: true, headers: warningOf(tag, question, served) }
}

/** Names what is held back; nothing where nothing is. */
function warningOf(tag: string, { age }: Question, { chosen, latest, heldUntil }: Served): Headers {
  if (!age || latest.since === chosen.since) return {}
  const until = heldUntil === '' ? '' : `, and is held back until ${heldUntil}`
  const text = `at an age of ${durationText(age.ms)}, ${tag} is of ${chosen.since}; it has been ${latest.digest} since ${latest.since}${until}`
  return { warning: `299 - "${text}"` }
}

function tooYoung(tag: string, { chosen, latest, heldUntil }: Served): OciError {
  const when = heldUntil === '' ? '' : ` and may be pulled from ${heldUntil}`
  const message = `${tag} is ${latest.digest} since ${latest.since}${when}; the newest that may be pulled is ${chosen.digest}`
  const detail = { tag, digest: latest.digest, ...(heldUntil && { time: heldUntil }), eligible: chosen.digest }
  return new OciError('DENIED', message, { detail })
}

async function refusalOf(
  visit: Visit,
  repo: RepoRef,
  tag: string,
  question: Question,
  resolved: Nothing,
): Promise<OciError> {
  const { until, age } = question
  if (resolved.why === 'no tag') return unknownTag(tag, `there was no such tag at ${until}`)
  if (resolved.why === 'deleted') {
    const { time, digest } = resolved
    return unknownTag(tag, `the tag was deleted at ${time}`, { deleteTime: time, digest })
  }
  const { digest, since } = resolved.latest
  if (resolved.why === 'gone') {
    return unknownTag(tag, `the tag was ${digest} since ${since}, which the repository has no more`, { digest })
  }
  const { next } = await explain(visit.call.app.db, repo, tag, question, resolved)
  const first = { digest: next?.digest ?? digest, time: next?.eligible ?? timePlus(since, age!.ms) }
  const span = durationText(age!.ms)
  const message = `nothing has been the tag ${tag} for ${span}: ${first.digest} will be served from ${first.time}`
  return new OciError('DENIED', message, { detail: { tag, digest: first.digest, time: first.time } })
}

function unknownTag(tag: string, message: string, detail: object = {}): OciError {
  return new OciError('MANIFEST_UNKNOWN', message, { detail: { tag, ...detail } })
}
