import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { findRepoByUid, toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { tagFields } from '#domains/registry/tags/tags.model.ts'
import { type FieldViolation, found, invalid, permissionDenied, refuseIfAny } from '#lib/errors.ts'
import { isUid } from '#lib/uid.ts'
import { defaultHold, durationText, maxAge, maxHold, readDuration } from '../views/views.model.ts'
import { type Explained, explainTag } from './asked-tags.service.ts'
import { type Bound, boundAs, boundByRule } from './bound-pulls.service.ts'

/** Parameters of a request. An empty age, hold or uid means that the request has none. */
export type ResolveRequest = {
  tag: string
  at: string | undefined
  minAge: string
  hold: string
  identityUid: string
  pullRuleUid: string
}

const settingsUpdate = [capabilityNumber('registry.settings.update')]

/**
 * Resolves a tag and explains why newer assignments are not served. Throws INVALID_ARGUMENT for invalid parameters, NOT_FOUND if
 * the repository does not exist, and PERMISSION_DENIED for policies of other identities.
 */
export async function resolveFor(call: Call, repoUid: string, asked: ResolveRequest): Promise<Explained> {
  const { tag, at, identityUid, pullRuleUid } = asked
  const [age, hold] = [readSpan('min_age', asked.minAge, maxAge), readSpan('hold', asked.hold, maxHold)]
  const problems: FieldViolation[] = [...age.problems, ...hold.problems]
  const say = (field: string, description: string) => problems.push({ field, description })
  if (!tagFields.name.pattern.test(tag)) say('tag', 'is not a valid tag')
  if (at !== undefined && at > call.now) say('at', 'must not be in the future')
  if (asked.hold !== '' && asked.minAge === '') say('hold', 'is only allowed together with min_age')
  if (identityUid !== '' && !isUid(identityUid)) say('identity_uid', 'is not a uid')
  if (identityUid !== '' && pullRuleUid !== '') say('pull_rule_uid', 'cannot be combined with identity_uid')
  refuseIfAny(problems)
  const isOthers = pullRuleUid !== '' || (identityUid !== '' && identityUid !== call.caller.uid)
  if (isOthers && !call.caller.rights.holds(repoUid, settingsUpdate)) {
    throw permissionDenied('you need the capability registry.settings.update to see the policies of other identities')
  }
  const { db } = call.app
  const repo = await toRepoRef(db, found(await findRepoByUid(db, repoUid), repoType, repoUid))
  const span =
    age.ms === undefined ? undefined : { ms: age.ms, hold: hold.ms ?? defaultHold, countFrom: 'tag' as const }
  const bound = await boundFor(call, repo, asked)
  const question = { until: at ?? call.now, isNow: at === undefined, age: span }
  return explainTag(call, repo, tag, question, bound)
}

async function boundFor(
  call: Call,
  repo: RepoRef,
  { identityUid, pullRuleUid }: ResolveRequest,
): Promise<Bound | undefined> {
  if (identityUid !== '') return boundAs(call, repo, identityUid)
  if (pullRuleUid === '') return undefined
  const bound = await boundByRule(call, repo, pullRuleUid)
  if (!bound)
    throw invalid({ field: 'pull_rule_uid', description: 'must be a cooldown policy that applies to this repository' })
  return bound
}

function readSpan(field: string, text: string, most: number): { ms: number | undefined; problems: FieldViolation[] } {
  const ms = readDuration(text)
  if (text === '') return { ms, problems: [] }
  if (ms === undefined) return { ms, problems: [{ field, description: 'must be a duration such as 12h, 7d or 2w' }] }
  return { ms, problems: ms > most ? [{ field, description: `must be at most ${durationText(most)}` }] : [] }
}
