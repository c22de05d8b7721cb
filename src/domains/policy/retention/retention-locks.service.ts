// Stores retention dates when tags change, and checks tag rules and holds. Each change of a tag runs these functions in its own
// transaction.
import type { App, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import type { TagAt } from '#domains/registry/hooks.ts'
import { lastSource } from '#domains/registry/tags/tag-history.store.ts'
import { type AssignmentCause, actorOf, subjectOfTag, type TagRepo } from '#domains/registry/tags/tags.model.ts'
import { namesWith, tagNames } from '#domains/registry/tags/tags.store.ts'
import { AppError, failedPrecondition } from '#lib/errors.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { holdCovers, holdIn, holdOn, protectionIn, protectionOf, RetentionSearch } from './protection.service.ts'
import {
  type ContentRules,
  contentRulesAt,
  datesOf,
  enforced,
  type Kept,
  latestOf,
  mostMoves,
  mostTagsNamed,
  noEnd,
  noRules,
  untaggedUntil,
  untilAfter,
} from './retention.model.ts'
import * as store from './retention-locks.store.ts'

type By = { app: Pick<App, 'contentRules'> }

/**
 * Rules, holds and quarantines that apply in the repository. Does not query the database if the cache knows that there are none.
 */
async function contentRulesOf({ app }: By, reader: Reader, repo: string): Promise<ContentRules> {
  const contentRules = await app.contentRules.of(reader, repo)
  return contentRules === noRules ? contentRules : contentRulesAt(contentRules, repo)
}

/** Stores the retention date of a digest that a tag no longer points to. */
export async function lockUnassignedDigest(tx: Tx, by: By, repo: TagRepo, left: TagAt): Promise<void> {
  const rules = enforced(await contentRulesOf(by, tx, repo.uid)).filter(({ isAbout }) => isAbout(left.tag))
  const latest = latestOf(rules.map((rule) => ({ until: untilAfter(rule, left.time), rule: rule.uid })))
  if (latest) await store.extendLock(tx, repo.id, left.digest, latest)
}

/**
 * Stores retention dates when a tag is assigned to a digest. Times of a tag always increase, so the time of the assignment can be
 * in the future. The date for such an assignment is stored now, because a rule might end before that time and then not count.
 */
export async function lockAssignedDigest(tx: Tx, by: By, repo: TagRepo, assigned: TagAt, now: string): Promise<void> {
  await lockFirstTag(tx, by, repo, assigned.digest, now)
  if (assigned.time > now) await lockUnassignedDigest(tx, by, repo, assigned)
}

/**
 * Stores the retention date of an untagged digest when it gets its first tag. Otherwise its protection as untagged content would
 * be lost.
 */
async function lockFirstTag(tx: Tx, by: By, repo: TagRepo, digest: string, now: string): Promise<void> {
  const contentRules = await contentRulesOf(by, tx, repo.uid)
  const rules = enforced(contentRules).filter(({ says }) => says.untaggedDays > 0)
  const former = contentRules.former.filter(({ says }) => says.untaggedDays > 0)
  if (rules.length + former.length === 0) return
  const untaggedSince = await store.untaggedSince(tx, repo, digest)
  // A digest that was pushed together with its tag was never untagged.
  if (untaggedSince === undefined || untaggedSince >= now) return
  const latest = latestOf(datesOf({ rules, former }, { assignments: [], untaggedSince }, now))
  if (latest) await store.extendLock(tx, repo.id, digest, latest)
}

/** Stores the retention date of a manifest that was pushed without a tag. */
export async function lockUntaggedDigest(
  tx: Tx,
  by: By,
  repo: Pick<TagRepo, 'id' | 'uid'>,
  digest: string,
  now: string,
): Promise<void> {
  const latest = latestOf(enforced(await contentRulesOf(by, tx, repo.uid)).map((rule) => untaggedUntil(rule, now)))
  if (latest) await store.extendLock(tx, repo.id, digest, latest)
}

/**
 * Throws TAG_IMMUTABLE if the tag exists and is immutable. Throws TAG_MOVERS if a tag rule allows only other identities to move
 * the tag.
 */
export async function requireMovable(
  tx: Tx,
  by: By,
  repo: TagRepo,
  move: Pick<AssignmentCause, 'actor' | 'source'> & { name: string; previousDigest: string },
): Promise<void> {
  const { tagRules } = await contentRulesOf(by, tx, repo.uid)
  const about = tagRules.filter(({ isAbout }) => isAbout(move.name))
  if (about.length === 0) return
  // A mirror can move tags that its upstream has set. It creates tags in the name of the member who set up the mirror.
  if (move.previousDigest !== '' && (await isOfUpstream(tx, repo, move))) return
  for (const { uid, says } of about) {
    if (says.immutable && move.previousDigest !== '') throw createImmutableError(move.name, uid)
    requireMover(says.movers, move, uid)
  }
}

/**
 * Throws if the tag must not be deleted. The rules for moving a tag apply, and a hold on the tag prevents the deletion too. A
 * cosign tag is kept while its subject is protected, because clients find signatures by their tag.
 */
export async function requireDeletable(
  tx: Tx,
  by: By,
  repo: TagRepo,
  removal: Pick<AssignmentCause, 'actor' | 'source' | 'now'> & { name: string; digest: string },
): Promise<void> {
  const { tagRules, holds } = await contentRulesOf(by, tx, repo.uid)
  const [name, tags] = [removal.name, [removal.name]]
  const about = tagRules.filter(({ isAbout }) => isAbout(name))
  const hold = holds.find(({ isAbout }) => isAbout(name))
  const subject = subjectOfTag(name)
  if (about.length === 0 && !hold && subject === undefined) return
  if (await isOfUpstream(tx, repo, removal)) return
  for (const { uid, says } of about) {
    if (says.immutable)
      throw createProtectionError({ by: 'IMMUTABLE', until: '', rule: uid, tags, with: removal.digest }, name, 'tag')
    requireMover(says.movers, removal, uid)
  }
  if (hold)
    throw createProtectionError({ by: 'HELD', until: '', rule: hold.uid, tags, with: removal.digest }, name, 'tag')
  // A subject that is not in the repository any more protects nothing.
  if (subject === undefined || !(await store.factsOf(tx, repo.id, subject))) return
  const kept = await protectionOf(await RetentionSearch.at(tx, by, repo, removal.now), subject)
  if (kept) throw createProtectionError(kept, name, 'tag')
}

/** True if a mirror changes a tag that its upstream has set. A mirror must not change tags that were set on this server. */
async function isOfUpstream(
  tx: Tx,
  repo: TagRepo,
  { source, name }: Pick<AssignmentCause, 'source'> & { name: string },
): Promise<boolean> {
  return source === 'upstream' && (await lastSource(tx, repo.ledger, name)) === 'upstream'
}

/** Throws TAGS_GUARDED if a tag rule or a hold protects tags of the repository. An upstream would move these tags. */
export async function requireNoTagProtection(tx: Tx, by: By, repo: TagRepo): Promise<void> {
  const { tagRules, holds } = await contentRulesOf(by, tx, repo.uid)
  const guards = [
    ...tagRules.filter(({ says }) => says.immutable || says.movers.length > 0),
    ...holds.filter(({ tags }) => tags.length > 0),
  ]
  if (guards.length === 0) return
  const names = await tagNames(tx, repo.id, '', mostMoves)
  for (const name of names) {
    const guard = guards.find(({ isAbout }) => isAbout(name))
    if (guard) throw createGuardedError(`${guard.uid} protects its tag ${name}`, guard.uid, name)
  }
  if (names.length < mostMoves) return
  const { uid } = guards[0]!
  throw createGuardedError(`it has too many tags to check which of them ${uid} protects`, uid, '')
}

function createGuardedError(why: string, rule: string, tag: string): AppError {
  const base = failedPrecondition({
    type: 'TAGS_GUARDED',
    subject: tag,
    description: `the repository cannot become a mirror, because ${why}; change the rule or release the hold first`,
  })
  const metadata = { rule, tags: tag }
  return new AppError('FAILED_PRECONDITION', base.message, { reason: 'TAGS_GUARDED', metadata, details: base.details })
}

/**
 * Throws if a hold protects the manifest. Without a digest, throws if a hold protects anything in the repository. Returns the
 * other protection, if there is one. Must run in the transaction of the deletion.
 */
export async function requireNoHold(
  tx: Tx,
  work: Pick<Work, 'app' | 'caller' | 'cause'>,
  repo: TagRepo,
  digest?: string,
): Promise<Kept | undefined> {
  const look = await RetentionSearch.at(tx, work, repo, work.cause.now)
  const held = digest === undefined ? await holdIn(look) : await holdOn(look, digest)
  if (held) throw createProtectionError(held, digest ?? repo.uid, digest === undefined ? 'repo' : 'digest')
  return digest === undefined ? protectionIn(look) : protectionOf(look, digest)
}

/**
 * Throws if anything protects the manifest or the repository. Also throws if the deletion would remove tags that the caller must
 * not move.
 */
export async function requireUnprotected(
  tx: Tx,
  work: Pick<Work, 'app' | 'caller' | 'cause'>,
  repo: TagRepo,
  digest?: string,
): Promise<void> {
  const kept = await requireNoHold(tx, work, repo, digest)
  if (kept) throw createProtectionError(kept, digest ?? repo.uid, digest === undefined ? 'repo' : 'digest')
  await requireMovers(tx, work, repo, actorOf(work), digest)
}

/** Throws if the deletion would remove tags that only other identities are allowed to move. */
async function requireMovers(tx: Tx, by: By, repo: TagRepo, actor: string, digest?: string): Promise<void> {
  const rules = (await contentRulesOf(by, tx, repo.uid)).tagRules.filter(({ says }) => says.movers.length > 0)
  if (rules.length === 0) return
  const names = digest === undefined ? tagNames(tx, repo.id, '', mostMoves) : namesWith(tx, repo, digest, mostMoves)
  const found = await names
  if (found.length >= mostMoves) requireMover(rules[0]!.says.movers, { actor, name: found[0]! }, rules[0]!.uid)
  for (const name of found) {
    for (const { uid, says, isAbout } of rules) if (isAbout(name)) requireMover(says.movers, { actor, name }, uid)
  }
}

function requireMover(movers: readonly string[], { actor, name }: { actor: string; name: string }, rule: string): void {
  if (movers.length === 0 || movers.some((uid) => isAtOrBelow(actor, uid))) return
  throw new AppError(
    'PERMISSION_DENIED',
    `the tag protection rule ${rule} does not allow you to set or delete the tag ${name}; ask an owner to add you to its movers`,
    {
      reason: 'TAG_MOVERS',
      metadata: { rule, tags: name },
    },
  )
}

function createImmutableError(tag: string, rule: string): AppError {
  const description = `the tag ${tag} was not moved, because it is immutable (tag protection rule ${rule}); use another tag`
  return new AppError('FAILED_PRECONDITION', description, {
    reason: 'TAG_IMMUTABLE',
    metadata: { rule, tags: tag },
    details: [{ type: 'PreconditionFailure', violations: [{ type: 'TAG_IMMUTABLE', subject: tag, description }] }],
  })
}

/** Error for a refused deletion. `what` is a digest, a tag or the uid of a repository. */
function createProtectionError(
  { by, until, rule, tags, ...kept }: Kept,
  what: string,
  kind: 'digest' | 'tag' | 'repo',
): AppError {
  const isPart =
    by !== 'UNDECIDED' && (kind === 'repo' || (kept.with !== '' && kept.with !== what && !tags.includes(what)))
  const parent =
    kind === 'repo'
      ? `${kept.with ? `its image ${kept.with}` : 'an image in it'} is`
      : `it belongs to ${kept.with}, which is`
  const part = isPart ? `, because ${parent} protected` : ''
  const because = {
    PROMISED: `the retention policy ${rule} keeps it ${until === noEnd ? 'forever' : `until ${until}`}`,
    HELD: `the legal hold ${rule} keeps it until the hold is released`,
    IMMUTABLE: `the tag ${tags[0]} is immutable (tag protection rule ${rule})`,
    LISTED: `the tag ${tags[0]} is an index that lists it (tag protection rule ${rule})`,
    LAST: `the retention policy ${rule} keeps the newest images of a tag, and it is one of them`,
    UNDECIDED: 'it has too many tags and parents to check that nothing protects it',
  }[by]
  const shown = { digest: what, tag: `the tag ${what}`, repo: 'the repository' }[kind]
  const description = `${shown} cannot be deleted${part}: ${because}.${helpFor(by, kind, rule)}`
  const base = failedPrecondition({ type: 'CONTENT_KEPT', subject: what, description })
  const metadata = { until: until === noEnd ? '' : until, rule, tags: tags.slice(0, mostTagsNamed).join(',') }
  return new AppError('FAILED_PRECONDITION', base.message, { reason: 'CONTENT_KEPT', metadata, details: base.details })
}

/** Next step after a refused deletion. There is no command that deletes a protected tag alone. */
function helpFor(by: Kept['by'], kind: 'digest' | 'tag' | 'repo', rule: string): string {
  if (by === 'HELD') return ` To release the hold: pinfold holds release ${rule}`
  if (kind === 'tag') return ''
  const image = kind === 'digest' ? 'REPOSITORY@DIGEST' : 'REPOSITORY'
  return ` To delete it anyway: pinfold images force-delete ${image} --reason TEXT`
}

/**
 * Time after which a manifest can be deleted, if only a retention date protects it. Does not query manifests if no rule gives
 * dates. Returns undefined if the digest had too many tags. Also returns undefined if `keep_last` may cover it, since each pull
 * would have to read the moves of other tags.
 */
export async function sunsetOf({ app }: Pick<Work, 'app'>, repo: TagRepo, digest: string): Promise<string | undefined> {
  const { db } = app
  const contentRules = await contentRulesOf({ app }, db, repo.uid)
  const [rules, { former }] = [enforced(contentRules), contentRules]
  if (rules.length + former.length === 0) return undefined
  const manifest = await store.unreferencedManifest(db, repo, digest)
  if (!manifest) return undefined
  const assignments = await store.assignmentsOfDigest(db, repo.ledger, digest, mostAssignmentsRead)
  if (assignments.length === mostAssignmentsRead) return undefined
  const names = [...new Set(assignments.map(({ tag }) => tag))]
  const mayBeLast = rules.some(({ says, isAbout }) => says.keepLast > 0 && names.some(isAbout))
  if (mayBeLast || names.some(subjectOfTag) || contentRules.holds.some((hold) => holdCovers(hold, digest, names)))
    return undefined
  const untaggedSince = assignments.length === 0 ? manifest.createTime : undefined
  const stored = await store.findLock(db, repo.id, digest)
  const given = datesOf({ rules, former }, { assignments, untaggedSince }, app.clock().toISOString())
  const until = latestOf(stored ? [stored, ...given] : given)?.until
  return until === noEnd ? undefined : until
}

/** Most periods of a digest under tags that a pull reads. */
const mostAssignmentsRead = 1000
