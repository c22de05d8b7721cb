import type { Call } from '#app.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { tagFields } from '../tags/tags.model.ts'
import { type Explanation, explain, type Resolved, resolveTag } from './resolve.service.ts'
import { defaultHold, durationText, maxAge, maxHold, readDuration } from './views.model.ts'

/** As callers of the API write it: an empty age or hold is none. */
export type AskedOfTag = { tag: string; at: string | undefined; minAge: string; hold: string }

/** What a tag stands for, and what is passed over and why. Throws INVALID_ARGUMENT, or NOT_FOUND without such a repo. */
export async function resolveFor(
  call: Call,
  repoUid: string,
  { tag, at, minAge, hold }: AskedOfTag,
): Promise<Explanation & { resolved: Resolved }> {
  const { db } = call.app
  const [age, span] = [readSpan('min_age', minAge, maxAge), readSpan('hold', hold, maxHold)]
  const problems: FieldViolation[] = [...age.problems, ...span.problems]
  if (!tagFields.name.pattern.test(tag)) problems.push({ field: 'tag', description: 'is no name of a tag' })
  if (at !== undefined && at > call.now) problems.push({ field: 'at', description: 'must not be in the future' })
  if (hold !== '' && minAge === '') problems.push({ field: 'hold', description: 'goes with min_age only' })
  refuseIfAny(problems)
  const repo = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const countFrom = 'tag' as const
  const asked = age.ms === undefined ? undefined : { ms: age.ms, hold: span.ms ?? defaultHold, countFrom }
  const question = { until: at ?? call.now, isNow: at === undefined, age: asked }
  const resolved = await resolveTag(db, repo, tag, question)
  return { resolved, ...(await explain(db, repo, tag, question, resolved)) }
}

function readSpan(field: string, text: string, most: number): { ms: number | undefined; problems: FieldViolation[] } {
  const ms = readDuration(text)
  if (text === '') return { ms, problems: [] }
  if (ms === undefined) return { ms, problems: [{ field, description: 'must be a time span such as 12h, 7d or 2w' }] }
  return { ms, problems: ms > most ? [{ field, description: `must be at most ${durationText(most)}` }] : [] }
}
