// Applies cooldown policies to pulls by tag, by digest and of blobs. A digest is old enough because of one of its tags, or
// because of an index that lists it. A referrer without runnable content is old enough if its subject is.
import type { Work } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { isStatement } from '#domains/registry/manifests/manifest-document.ts'
import { pullFound } from '#domains/registry/manifests/manifests.service.ts'
import { linkedFrom, subjectOf } from '#domains/registry/manifests/manifests.store.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { tagsOf } from '../retention/retention-locks.store.ts'
import { isEligible, rowsOf } from '../views/resolve.service.ts'
import { type Age, createReadBudget, defaultHold, type ReadBudget, timePlus } from '../views/views.model.ts'

import { mostRules, type PullRule, strictest } from './pull-rules.model.ts'
import { pullRuleTable } from './pull-rules.store.ts'

/** Cooldown policies for a caller in a repository: enforced policies, and policies in mode OBSERVE. */
export type Bound = {
  enforced: readonly PullRule[]
  observed: readonly PullRule[]
  /** Digests that are exempt from all of these policies. */
  accepted: readonly string[]
}

/** Cooldown policies for the caller. Returns undefined if there are none. */
export async function boundBy(work: Work, repo: Pick<RepoRef, 'uid'>): Promise<Bound | undefined> {
  const { app, caller } = work
  if (app.pullRules.isEmpty() || caller.uid === '') return undefined
  return boundAs(work, repo, caller.uid)
}

/** Cooldown policies for another identity. */
export async function boundAs(work: Work, repo: Pick<RepoRef, 'uid'>, identity: string): Promise<Bound | undefined> {
  return boundTo(work, repo, (rule) => binds(rule, repo.uid, identity))
}

/**
 * Applies only one policy, as if it were enforced. Returns undefined if the scope of the policy does not include the repository.
 */
export async function boundByRule(work: Work, repo: Pick<RepoRef, 'uid'>, uid: string): Promise<Bound | undefined> {
  const bound = await boundTo(work, repo, (rule) => rule.uid === uid && isAtOrBelow(repo.uid, rule.scopeUid))
  return bound && { ...bound, enforced: [...bound.enforced, ...bound.observed], observed: [] }
}

async function boundTo(
  { app, cause }: Work,
  repo: Pick<RepoRef, 'uid'>,
  isWanted: (rule: PullRule) => boolean,
): Promise<Bound | undefined> {
  const known = await app.pullRules.of(rootOf(repo.uid))
  if (!known) return undefined
  const rules = known.rules.filter(isWanted)
  if (rules.length === 0) return undefined
  const accepted = known.exceptions
    .filter(({ scopeUid, expireTime }) => isAtOrBelow(repo.uid, scopeUid) && expireTime > cause.now)
    .map(({ digest }) => digest)
  return {
    enforced: rules.filter(({ mode }) => mode !== 'OBSERVE'),
    observed: rules.filter(({ mode }) => mode === 'OBSERVE'),
    accepted: [...new Set(accepted)],
  }
}

/** True if an enforced policy applies to the caller in a repository. Reads the database, not the cache. */
export async function isBound(reader: Reader, caller: string, repo: string): Promise<boolean> {
  const rules = await pullRuleTable.list.below(reader, rootOf(repo), {}, mostRules)
  return rules.some((rule) => rule.mode !== 'OBSERVE' && binds(rule, repo, caller))
}

function binds({ scopeUid, identities, belowGroup }: PullRule, repo: string, caller: string): boolean {
  if (!isAtOrBelow(repo, scopeUid)) return false
  return belowGroup === '' ? identities.includes(caller) : isAtOrBelow(caller, belowGroup)
}

/** Combines two policies. The larger age applies, and assignments of other tags count only if they count for both policies. */
export function together(one: Age, other: Age): Age {
  const countFrom = one.countFrom === 'repo' && other.countFrom === 'repo' ? 'repo' : 'tag'
  return { ms: Math.max(one.ms, other.ms), hold: Math.max(one.hold, other.hold), countFrom }
}

/** Most parents of a digest, tags of a digest, and levels of parents that are examined. */
const mostAbove = 64
const mostTags = 50
const mostSteps = 4

/** Checks which digests cooldown policies allow in a repository now. Caches the results for its lifetime. */
export class Passing {
  readonly #work: Work
  readonly #repo: RepoRef
  readonly #rules: readonly PullRule[]
  readonly #accepted: ReadonlySet<string>
  readonly #known = new Map<string, boolean>()
  readonly #looks: ReadBudget = createReadBudget()

  constructor(work: Work, repo: RepoRef, rules: readonly PullRule[], accepted: readonly string[]) {
    this.#work = work
    this.#repo = repo
    this.#rules = rules
    this.#accepted = new Set(accepted)
  }

  /** True if a manifest can be pulled by its digest. */
  async manifest(digest: string, steps = 0): Promise<boolean> {
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    // Prevents endless recursion: a digest that is its own subject by way of tags is not allowed because of itself.
    this.#known.set(digest, false)
    const passes = this.#accepted.has(digest) || (await this.#decide(digest, steps))
    this.#known.set(digest, passes)
    return passes
  }

  /** True if a pull by the tag may get the digest. A referrer is allowed if its subject is. */
  async tag(digest: string, tag: string): Promise<boolean> {
    return this.#accepted.has(digest) || this.#byTag(digest, tag, 0)
  }

  /** True if a manifest that needs or lists the blob can be pulled. */
  async blob(digest: string): Promise<boolean> {
    return this.#above(digest, undefined, 0)
  }

  async #decide(digest: string, steps: number): Promise<boolean> {
    if (await this.#byTags(digest, steps)) return true
    if (steps === mostSteps) return false
    return (await this.#bySubject(digest, steps)) || this.#above(digest, 1, steps)
  }

  /**
   * True if a parent of the digest can be pulled. The oldest parents are checked first, because a later push cannot add an older
   * parent.
   */
  async #above(digest: string, kind: 1 | undefined, steps: number): Promise<boolean> {
    for (const manifest of await linkedFrom(this.#work.app.db, this.#repo.id, { digest, kind, most: mostAbove })) {
      if (await this.manifest(manifest, steps + 1)) return true
    }
    return false
  }

  async #bySubject(digest: string, steps: number): Promise<boolean> {
    const subject = await subjectOf(this.#work.app.db, this.#repo.id, digest)
    return subject !== '' && (await this.#isStatement(digest)) && this.manifest(subject, steps + 1)
  }

  /** True if the digest is old enough under a present tag, or was old enough under a former tag. */
  async #byTags(digest: string, steps: number): Promise<boolean> {
    if (this.#looks.left-- <= 0) return false
    const { db } = this.#work.app
    for (const tag of await tagsOf(db, this.#repo.ledger, mostTags, digest)) {
      if (await this.#byTag(digest, tag, steps)) return true
    }
    return false
  }

  async #byTag(digest: string, tag: string, steps: number): Promise<boolean> {
    const rule = strictest(this.#rules, tag)
    if (!rule) return true
    const about = digestAbout(tag)
    if (about && steps < mostSteps && (await this.#isStatement(digest))) {
      if (await this.manifest(about.digest, steps + 1)) return true
    }
    const { now } = this.#work.cause
    const question = {
      age: rule.age,
      cut: timePlus(now, -rule.age.ms),
      until: rowsOf({ until: now, isNow: true }),
      looks: this.#looks,
    }
    return isEligible(this.#work.app.db, this.#repo, digest, tag, question)
  }

  async #isStatement(digest: string): Promise<boolean> {
    const found = await pullFound(this.#work, this.#repo, { digest, since: '' })
    return found !== undefined && isStatement(found.manifest)
  }
}

const dayMs = 86_400_000

/** True if a digest is old enough under a policy for all tags, which counts assignments of any tag of the repository. */
export async function hasCooled(work: Work, repo: RepoRef, digest: string, days: number): Promise<boolean> {
  const rule: PullRule = {
    ...{ uid: '', scopeUid: repo.uid, name: '', tags: [], exceptTags: [], identities: [], belowGroup: '' },
    ...{ mode: 'DENY', createTime: '', updateTime: '' },
    age: { ms: days * dayMs, hold: defaultHold, countFrom: 'repo' },
  }
  return new Passing(work, repo, [rule], []).manifest(digest)
}
