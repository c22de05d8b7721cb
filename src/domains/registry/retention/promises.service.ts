// What keeps a manifest, and what refuses to break it. Every door that moves a tag or deletes something asks here, in the
// transaction of the change.
import type { App, Work } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { AppError, failedPrecondition } from '#lib/errors.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { lastSource } from '../tags/tag-history.store.ts'
import type { Mover, TagRepo } from '../tags/tags.model.ts'
import { namesWith, tagNames } from '../tags/tags.store.ts'
import * as store from './promises.store.ts'
import {
  daysAfter,
  enforced,
  isAbout,
  type Kept,
  type Law,
  lawAt,
  type Mark,
  noEnd,
  quarantineOf,
  type RetentionRule,
  untilAfter,
} from './retention.model.ts'

type By = { app: Pick<App, 'laws'> }

/** Of the parts of a manifest, and what it is a part of, so many are looked at; what has more is kept. */
const mostAbove = 1000
const mostTagsNamed = 20
/** So many rows of the ledger are looked at before a repo is deleted; what has more is kept. */
const mostMoves = 10_000
const movesAtOnce = 1000

/** What people have said that holds in the repo. Asks the database nothing where it is known that nobody has. */
export async function lawOf({ app }: By, reader: Reader, repo: string): Promise<Law> {
  return lawAt(await app.laws.of(reader, repo), repo)
}

/** A tag leaves the digest: from now on the date counts that the rules give. */
export async function promiseLeft(
  tx: Tx,
  by: By,
  repo: TagRepo,
  left: { tag: string; digest: string; time: string },
): Promise<void> {
  if (left.digest === '') return
  const rules = enforced(await lawOf(by, tx, repo.uid)).filter(({ says }) => isAbout(says, left.tag))
  const latest = latestOf(rules.map((rule) => ({ until: untilAfter(rule, left.time), rule: rule.uid })))
  if (latest) await store.extendPromise(tx, repo.id, left.digest, latest)
}

/** A manifest comes without a tag. */
export async function promiseUntagged(
  tx: Tx,
  by: By,
  repo: Pick<TagRepo, 'id' | 'uid'>,
  digest: string,
  now: string,
): Promise<void> {
  const latest = latestOf(enforced(await lawOf(by, tx, repo.uid)).map((rule) => untaggedUntil(rule, now)))
  if (latest) await store.extendPromise(tx, repo.id, digest, latest)
}

function untaggedUntil({ uid, says }: RetentionRule, time: string): store.StoredPromise {
  return { until: says.untaggedDays === 0 ? '' : daysAfter(time, says.untaggedDays), rule: uid }
}

function latestOf(promises: readonly store.StoredPromise[]): store.StoredPromise | undefined {
  return promises.filter(({ until }) => until !== '').toSorted((a, b) => (a.until < b.until ? 1 : -1))[0]
}

/** Throws unless the tag may take another digest, or be made: what never moves stays, and only movers move the others. */
export async function requireMovable(
  tx: Tx,
  by: By,
  repo: TagRepo,
  move: Pick<Mover, 'actor' | 'source'> & { name: string; previousDigest: string },
): Promise<void> {
  const { tagRules } = await lawOf(by, tx, repo.uid)
  const about = tagRules.filter(({ says }) => isAbout(says, move.name))
  if (about.length === 0 || (await isOfUpstream(tx, repo, move))) return
  for (const { uid, says } of about) {
    if (says.immutable && move.previousDigest !== '') throw immovable(move.name, uid)
    requireMover(says.movers, move, uid)
  }
}

/** The same for its deletion, which an immutable tag and one that is held refuse as well. */
export async function requireDeletable(
  tx: Tx,
  by: By,
  repo: TagRepo,
  removal: Pick<Mover, 'actor' | 'source'> & { name: string; digest: string },
): Promise<void> {
  const { tagRules, holds } = await lawOf(by, tx, repo.uid)
  const [name, tags] = [removal.name, [removal.name]]
  const about = tagRules.filter(({ says }) => isAbout(says, name))
  const hold = holds.find((one) => one.tags.length > 0 && isAbout({ ...one, exceptTags: [] }, name))
  if (about.length === 0 && !hold) return
  if (await isOfUpstream(tx, repo, { ...removal, previousDigest: removal.digest })) return
  for (const { uid, says } of about) {
    if (says.immutable) throw refusal({ by: 'IMMUTABLE', until: '', rule: uid, tags, with: removal.digest }, name)
    requireMover(says.movers, removal, uid)
  }
  if (hold) throw refusal({ by: 'HELD', until: '', rule: hold.uid, tags, with: removal.digest }, name)
}

/** Whether an upstream changes what it has set itself, or what nobody has; what was set here is not its own to change. */
async function isOfUpstream(
  tx: Tx,
  repo: TagRepo,
  { source, name, previousDigest }: Pick<Mover, 'source'> & { name: string; previousDigest: string },
): Promise<boolean> {
  if (source !== 'upstream') return false
  return previousDigest === '' || (await lastSource(tx, repo.ledger, name)) === 'upstream'
}

/** Throws where the repo has tags that somebody else would move from now on although a rule or a hold forbids it. */
export async function requireUnguarded(tx: Tx, by: By, repo: TagRepo): Promise<void> {
  const { tagRules, holds } = await lawOf(by, tx, repo.uid)
  const guards = [
    ...tagRules.filter(({ says }) => says.immutable || says.movers.length > 0),
    ...holds.filter(({ tags }) => tags.length > 0).map(({ uid, tags }) => ({ uid, says: { tags, exceptTags: [] } })),
  ]
  if (guards.length === 0) return
  const names = await tagNames(tx, repo.id, '', mostMoves)
  for (const name of names) {
    const guard = guards.find(({ says }) => isAbout(says, name))
    if (guard) throw guarded(`${guard.uid} keeps the tag ${name} of the repo`, guard.uid, name)
  }
  if (names.length < mostMoves) return
  const { uid } = guards[0]!
  throw guarded(`the repo has too many tags to see which of them ${uid} keeps`, uid, '')
}

function guarded(why: string, rule: string, tag: string): AppError {
  const base = failedPrecondition({
    type: 'TAGS_GUARDED',
    subject: tag,
    description: `${why}; an upstream would move it`,
  })
  const metadata = { rule, tags: tag }
  return new AppError('FAILED_PRECONDITION', base.message, { reason: 'TAGS_GUARDED', metadata, details: base.details })
}

/** Throws where tags go with the manifest, or with the whole repo, that a rule lets only others delete. */
export async function requireMovers(tx: Tx, by: By, repo: TagRepo, actor: string, digest?: string): Promise<void> {
  const rules = (await lawOf(by, tx, repo.uid)).tagRules.filter(({ says }) => says.movers.length > 0)
  if (rules.length === 0) return
  const names = digest === undefined ? tagNames(tx, repo.id, '', mostMoves) : namesWith(tx, repo, digest, mostMoves)
  const found = await names
  if (found.length >= mostMoves) requireMover(rules[0]!.says.movers, { actor, name: found[0]! }, rules[0]!.uid)
  for (const name of found) {
    for (const { uid, says } of rules) if (isAbout(says, name)) requireMover(says.movers, { actor, name }, uid)
  }
}

function requireMover(movers: readonly string[], { actor, name }: { actor: string; name: string }, rule: string): void {
  if (movers.length === 0 || movers.some((uid) => isAtOrBelow(actor, uid))) return
  throw new AppError(
    'PERMISSION_DENIED',
    `the rule ${rule} says who moves the tag ${name}, and the caller is not named`,
    {
      reason: 'TAG_MOVERS',
      metadata: { rule, tags: name },
    },
  )
}

function immovable(tag: string, rule: string): AppError {
  const description = `the tag ${tag} never moves: the rule ${rule} says so`
  return new AppError('FAILED_PRECONDITION', description, {
    reason: 'TAG_IMMUTABLE',
    metadata: { rule, tags: tag },
    details: [{ type: 'PreconditionFailure', violations: [{ type: 'TAG_IMMUTABLE', subject: tag, description }] }],
  })
}

/** Why `what` cannot be deleted. */
export function refusal({ by, until, rule, tags, ...kept }: Kept, what: string): AppError {
  const because = {
    PROMISED: until === noEnd ? 'for good' : `until ${until}`,
    HELD: 'by a hold',
    IMMUTABLE: `by the tag ${tags[0]}, which never moves`,
    LAST: 'as one of the last that such tags have had',
  }[by]
  const part = kept.with === what || kept.with === '' || tags.includes(what) ? '' : `, as a part of ${kept.with}`
  const description = `${what} is kept ${because}${part}; ${rule} says so`
  const base = failedPrecondition({ type: 'CONTENT_KEPT', subject: what, description })
  const metadata = { until: until === noEnd ? '' : until, rule, tags: tags.slice(0, mostTagsNamed).join(',') }
  return new AppError('FAILED_PRECONDITION', base.message, { reason: 'CONTENT_KEPT', metadata, details: base.details })
}

/**
 * What keeps the manifest now, if anything does: it itself, an index that lists it, or what it is a signature of, and so
 * on. A date counts also when the rule that gave it is gone.
 */
export async function keptOf(
  tx: Reader,
  by: By,
  repo: TagRepo,
  digest: string,
  now: string,
): Promise<Kept | undefined> {
  const law = await lawOf(by, tx, repo.uid)
  const isLawless = enforced(law).length === 0 && law.tagRules.length === 0 && law.holds.length === 0
  if (isLawless && !(await store.latestPromise(tx, repo.id, now))) return undefined
  const seen = new Set([digest])
  for (const one of seen) {
    const kept = await keptAlone(tx, law, repo, one, now)
    if (kept) return kept
    const facts = await store.factsOf(tx, repo.id, one)
    if (facts && facts.subject !== '') seen.add(facts.subject)
    for (const index of await store.indexesOf(tx, repo.id, one, mostAbove)) seen.add(index)
    if (seen.size > mostAbove) return { by: 'PROMISED', until: noEnd, rule: '', tags: [], with: one }
  }
  return undefined
}

/** The hold that keeps the manifest, or what it is a part of, whatever else does: nobody breaks one by a call. */
export async function heldOf(tx: Reader, by: By, repo: TagRepo, digest: string): Promise<Kept | undefined> {
  const { holds } = await lawOf(by, tx, repo.uid)
  if (holds.length === 0) return undefined
  const seen = new Set([digest])
  for (const one of seen) {
    const stays = await store.staysOf(tx, repo.ledger, one)
    const names = [...new Set(stays.map(({ tag }) => tag))]
    // What has too many to be looked at is held, since it may be.
    const isTooMuch = seen.size > mostAbove || stays.length >= store.mostStays
    const hold = holds.find((each) => isTooMuch || isHeld(each, one, names))
    if (hold) return { by: 'HELD', until: '', rule: hold.uid, tags: names.slice(0, mostTagsNamed), with: one }
    const facts = await store.factsOf(tx, repo.id, one)
    if (facts && facts.subject !== '') seen.add(facts.subject)
    for (const index of await store.indexesOf(tx, repo.id, one, mostAbove)) seen.add(index)
  }
  return undefined
}

/** The same for anything in a repo. */
export async function heldIn(tx: Reader, by: By, repo: TagRepo): Promise<Kept | undefined> {
  const { holds } = await lawOf(by, tx, repo.uid)
  const held = (rule: string, digest: string): Kept => ({ by: 'HELD', until: '', rule, tags: [], with: digest })
  for (const { uid, digest } of holds) {
    if (digest !== '' && (await store.factsOf(tx, repo.id, digest))) return held(uid, digest)
  }
  const ofTags = holds.filter(({ tags }) => tags.length > 0)
  if (ofTags.length === 0) return undefined
  const seen = new Set<string>()
  for await (const move of movesOf(tx, repo.ledger)) {
    if (move === 'too many') return held(ofTags[0]!.uid, '')
    if (seen.has(move.tag)) continue
    seen.add(move.tag)
    const hold = ofTags.find((one) => isAbout({ ...one, exceptTags: [] }, move.tag))
    const [digest] = hold ? await store.digestsUnder(tx, repo, move.tag, movesAtOnce) : []
    if (hold && digest !== undefined) return held(hold.uid, digest)
  }
  return undefined
}

/** What keeps a manifest by itself. */
async function keptAlone(tx: Reader, law: Law, repo: TagRepo, digest: string, now: string): Promise<Kept | undefined> {
  const stays = await store.staysOf(tx, repo.ledger, digest)
  const names = [...new Set(stays.map(({ tag }) => tag))]
  const tags = names.slice(0, mostTagsNamed)
  const hold = law.holds.find((one) => isHeld(one, digest, names))
  if (hold) return { by: 'HELD', until: '', rule: hold.uid, tags, with: digest }
  const present = await namesWith(tx, repo, digest, mostMoves)
  // A rule may be about one that was not looked at.
  if (stays.length >= store.mostStays || present.length >= mostMoves) {
    return { by: 'PROMISED', until: noEnd, rule: '', tags, with: digest }
  }
  const immutable = law.tagRules.find(({ says }) => says.immutable && present.some((tag) => isAbout(says, tag)))
  if (immutable) {
    const immovable = present.filter((tag) => isAbout(immutable.says, tag)).slice(0, mostTagsNamed)
    return { by: 'IMMUTABLE', until: '', rule: immutable.uid, tags: immovable, with: digest }
  }
  const date = latestOf(await datesOf(tx, law, repo, digest, stays, now))
  if (date && date.until > now) return { by: 'PROMISED', ...date, tags, with: digest }
  for (const rule of enforced(law)) {
    if (rule.says.keepLast === 0 || !names.some((tag) => isAbout(rule.says, tag))) continue
    const last = await lastOf(tx, repo, rule)
    if (last === 'too many' || last.has(digest)) return { by: 'LAST', until: '', rule: rule.uid, tags, with: digest }
  }
  return undefined
}

export function isHeld(hold: Mark, digest: string, names: readonly string[]): boolean {
  if (hold.digest !== '') return hold.digest === digest
  return names.some((name) => isAbout({ ...hold, exceptTags: [] }, name))
}

/** The dates that count for a manifest: the one that it has, and those that the rules of today give it. */
async function datesOf(
  tx: Reader,
  law: Law,
  repo: TagRepo,
  digest: string,
  stays: readonly store.TagStay[],
  now: string,
): Promise<store.StoredPromise[]> {
  const stored = await store.promiseOf(tx, repo.id, digest)
  const dates = stored ? [stored] : []
  const createTime = stays.length === 0 ? (await store.factsOf(tx, repo.id, digest))?.createTime : undefined
  for (const rule of enforced(law)) {
    for (const { tag, left } of stays) {
      if (isAbout(rule.says, tag)) dates.push({ until: untilAfter(rule, left || now), rule: rule.uid })
    }
    if (createTime !== undefined) dates.push(untaggedUntil(rule, createTime))
  }
  return dates
}

/** The last digests that such tags have had. */
export async function lastOf(tx: Reader, repo: TagRepo, { says }: RetentionRule): Promise<Set<string> | 'too many'> {
  const last = new Set<string>()
  for await (const move of movesOf(tx, repo.ledger)) {
    if (move === 'too many') return move
    if (move.digest === '' || !isAbout(says, move.tag)) continue
    last.add(move.digest)
    if (last.size >= says.keepLast) break
  }
  return last
}

/** The moves of a ledger, the newest first; ends with `too many` where there are more than are looked at. */
async function* movesOf(tx: Reader, ledger: number): AsyncGenerator<store.LedgerMove | 'too many'> {
  let before = { time: '~', tag: '' }
  for (let seen = 0; seen < mostMoves; seen += movesAtOnce) {
    const moves = await store.movesBefore(tx, ledger, before, movesAtOnce)
    yield* moves
    if (moves.length < movesAtOnce) return
    before = moves.at(-1)!
  }
  yield 'too many'
}

/** Why a repo cannot be deleted: something in it is kept. Says so too where that would take too long to find out. */
export async function keptIn(tx: Tx, by: By, repo: TagRepo, now: string): Promise<Kept | undefined> {
  const stored = await store.latestPromise(tx, repo.id, now)
  if (stored) return { by: 'PROMISED', ...stored, tags: [], with: '' }
  const law = await lawOf(by, tx, repo.uid)
  const rules = enforced(law)
  const immutable = law.tagRules.filter(({ says }) => says.immutable)
  if (rules.length + immutable.length + law.holds.length === 0) return undefined
  for (const rule of rules) {
    const { untaggedDays } = rule.says
    if (untaggedDays > 0 && (await store.anySince(tx, repo.id, daysAfter(now, -untaggedDays)))) {
      return { by: 'PROMISED', ...untaggedUntil(rule, now), tags: [], with: '' }
    }
  }
  const had = new Set<string>()
  for await (const move of movesOf(tx, repo.ledger)) {
    if (move === 'too many') return { by: 'PROMISED', until: noEnd, rule: rules[0]?.uid ?? '', tags: [], with: '' }
    const kept = await keptByMove(tx, law, repo, move, { now, had })
    if (kept) return kept
  }
  return undefined
}

/** What a row of the ledger says is kept, of what the repo still has; `had` are the manifests that were found already. */
async function keptByMove(
  tx: Reader,
  law: Law,
  repo: TagRepo,
  { tag }: store.LedgerMove,
  { now, had }: { now: string; had: Set<string> },
): Promise<Kept | undefined> {
  if (had.has(tag)) return undefined
  had.add(tag)
  const says = { tags: [] as string[], exceptTags: [] as string[] }
  const isNamed =
    enforced(law).some((rule) => isAbout(rule.says, tag)) ||
    law.tagRules.some((rule) => rule.says.immutable && isAbout(rule.says, tag)) ||
    law.holds.some((hold) => hold.tags.length > 0 && isAbout({ ...says, tags: hold.tags }, tag))
  if (!isNamed) return undefined
  for (const digest of await store.digestsUnder(tx, repo, tag, movesAtOnce)) {
    const kept = await keptAlone(tx, law, repo, digest, now)
    if (kept) return kept
  }
  return undefined
}

/** The quarantine that keeps the digest from being pulled in the repo. */
export async function quarantinedAs(
  { app }: Pick<Work, 'app'>,
  repo: string,
  digest: string,
): Promise<Mark | undefined> {
  return quarantineOf(await app.laws.of(app.db, repo), repo, digest)
}

/** When a manifest may be deleted that nothing but its date keeps; asks nothing where no rule is in force. */
export async function sunsetOf({ app }: Pick<Work, 'app'>, repo: TagRepo, digest: string): Promise<string | undefined> {
  if (enforced(await lawOf({ app }, app.db, repo.uid)).length === 0) return undefined
  const until = await store.endOf(app.db, repo, digest)
  return until === noEnd ? undefined : until
}
