// Serves /v2/<name>/_svc/resolve/<tag>. The response has the digest of a tag at a time or an age. It also lists newer assignments
// that were skipped, with their reasons, and the next digest.
import { explainTag } from '#domains/policy/pull-rules/asked-tags.service.ts'
import { boundBy } from '#domains/policy/pull-rules/bound-pulls.service.ts'
import type { Chosen, Explanation, Question, Resolved } from '#domains/policy/views/resolve.service.ts'
import {
  defaultHold,
  durationText,
  maxAge,
  maxHold,
  readDuration,
  type View,
} from '#domains/policy/views/views.model.ts'
import { allow } from '../access.ts'
import { OciError } from '../errors.ts'
import { refused, timeOf } from '../parameters.ts'
import { answerWith } from '../respond.ts'
import type { Visit } from '../visit.ts'
import { questionOf } from './pulls.ts'

export async function getResolution(visit: Visit, tag: string): Promise<void> {
  const repo = await allow(visit, 'history.read', { tag })
  const bound = await boundBy(visit.call, repo)
  const viewed = questionOf(visit, readQuestion(visit))
  const { question, resolved, rule, ...explanation } = await explainTag(visit.call, repo, tag, viewed, bound)
  if ('why' in resolved && resolved.why === 'no tag') {
    throw new OciError('MANIFEST_UNKNOWN', `the tag did not exist at ${question.until}`, { detail: { tag } })
  }
  const text = JSON.stringify({
    ...toBody(tag, question, resolved, explanation),
    ...(rule && { rule: { uid: rule.uid, name: rule.name, mode: rule.mode, refuses: rule.refuses } }),
  })
  answerWith(visit, text, { 'cache-control': 'no-store' })
}

/** Time and age from the view in the path or from the query. Throws if the request has both. */
function readQuestion(visit: Visit): Pick<View, 'at' | 'age'> {
  const { query, view } = visit
  const [at, minimum] = [timeOf(visit, 'at', 'down'), readSpan(visit, 'min_age', maxAge)]
  const hold = readSpan(visit, 'hold', maxHold)
  const given = ['at', 'min_age', 'hold'].find((name) => query.has(name))
  if (view && given !== undefined) throw refused(given, 'cannot be combined with a view in the path')
  if (hold !== undefined && minimum === undefined) throw refused('hold', 'is only allowed together with min_age')
  if (view) return view
  return { at, age: minimum === undefined ? undefined : { ms: minimum, hold: hold ?? defaultHold, countFrom: 'tag' } }
}

function readSpan({ query }: Visit, name: string, most: number): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const ms = readDuration(text)
  if (ms === undefined) throw refused(name, 'must be a duration such as 12h, 7d or 2w')
  if (ms > most) throw refused(name, `must be at most ${durationText(most)}`)
  return ms
}

function toBody(tag: string, { until, age }: Question, resolved: Resolved, { skipped, next }: Explanation): object {
  const why = 'why' in resolved ? resolved.why : undefined
  const latest = 'latest' in resolved ? resolved.latest : undefined
  return {
    tag,
    at: until,
    ...(age && { minAge: durationText(age.ms), hold: durationText(age.hold) }),
    ...(why && { reason: why }),
    ...('time' in resolved && { deleteTime: resolved.time }),
    ...(latest && { latest: toAssignment(latest) }),
    ...(resolved.chosen && { chosen: toAssignment(resolved.chosen) }),
    skipped: skipped.map(({ digest, time, reason, eligible }) => {
      return { digest, assignTime: time, reason, ...(eligible && { eligibleTime: eligible }) }
    }),
    ...(next && { next: { digest: next.digest, time: next.eligible } }),
  }
}

/** Converts an assignment to its JSON form. `imported` marks a time that the import has set, not the clock of this server. */
function toAssignment({ digest, since, imported }: Chosen): object {
  return { digest, assignTime: since, ...(imported && { imported }) }
}
