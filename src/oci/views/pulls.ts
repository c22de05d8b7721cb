// Pulls by tag that are not plain ones: in a view of the repository, or by somebody whom a rule holds back from what is
// too young.

import { type Pulled, pullFound, pullTag } from '#domains/registry/manifests/manifests.service.ts'
import {
  type Asked,
  askedOf,
  pullStatement,
  unviewed,
  type Viewed,
} from '#domains/registry/pull-rules/asked-tags.service.ts'
import { boundBy, Passing } from '#domains/registry/pull-rules/bound-pulls.service.ts'
import { strictest } from '#domains/registry/pull-rules/pull-rules.model.ts'
import type { RepoRef } from '#domains/registry/repos/repos.model.ts'
import { explain, type Nothing, type Question, type Served } from '#domains/registry/views/resolve.service.ts'
import { durationText, timePlus } from '#domains/registry/views/views.model.ts'
import { OciError } from '../errors.ts'
import type { Headers } from '../respond.ts'
import type { Visit } from '../visit.ts'
import { judgedBy } from './judged.ts'

/** The time of the request. Throws NAME_INVALID where the moment of the view has not come. */
export function timeFor({ call }: Visit, { at }: Viewed): string {
  const { now } = call.cause
  if (at !== undefined && at > now) {
    throw new OciError('NAME_INVALID', `${at} has not come yet: it is ${now}`, { detail: { at, now } })
  }
  return now
}

/** `isAged`: it was chosen by its age or as of a moment. */
export type PulledTag = Pulled & { headers?: Headers; isAged?: true }

/** What the tag stands for, for this visitor; `undefined` where there is no such tag. Throws the reason for anything else. */
export async function pullTagFor(visit: Visit, repo: RepoRef, tag: string): Promise<PulledTag | undefined> {
  const { call, view } = visit
  const bound = await boundBy(call, repo)
  if (!bound && !view) return pullTag(call, repo, tag)
  const viewed = view ?? unviewed
  const asked = askedOf(timeFor(visit, viewed), viewed, bound, tag)
  const { rule } = asked
  const passing = bound && new Passing(call, repo, bound.enforced, bound.accepted)
  const pulled = (await pullStatement(call, repo, tag, asked, passing)) ?? (await pullAged(visit, repo, tag, asked))
  // Of a moment that is past, the ledger knows less than a rule has to.
  const isPast = view?.at !== undefined
  if (rule) judgedBy(visit, rule, isPast && !(await passing!.tag(pulled.manifest.digest, tag)))
  const observing = bound && strictest(bound.observed, tag)
  if (observing) {
    const seen = new Passing(call, repo, bound.observed, bound.accepted)
    judgedBy(visit, observing, !(await seen.tag(pulled.manifest.digest, tag)))
  }
  return pulled
}

async function pullAged(visit: Visit, repo: RepoRef, tag: string, { question, rule }: Asked): Promise<PulledTag> {
  // A rule is about now: what a moment that is past gives is judged once it is known.
  const ageRule = question.isNow ? rule : undefined
  const served = await visit.call.app.views.of(repo, tag, question)
  if (!served.chosen) {
    const refusal = await refusalOf(visit, repo, tag, question, served)
    if (ageRule && served.why === 'young') judgedBy(visit, ageRule, true, refusal)
    throw refusal
  }
  if (ageRule?.mode === 'DENY' && question.age && served.chosen.digest !== served.latest.digest) {
    judgedBy(visit, ageRule, true, tooYoung(tag, served))
  }
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
