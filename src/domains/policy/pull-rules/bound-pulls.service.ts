// What rules say of one pull. They bind whoever they are for by whatever name an image is pulled: a digest is old enough
// where a tag makes it so, or what lists it, or, for what nothing can be run of, what it is about.
import type { Work } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { isStatement } from '#domains/registry/manifests/manifest-document.ts'
import { pullFound } from '#domains/registry/manifests/manifests.service.ts'
import { linkedFrom, subjectOf } from '#domains/registry/manifests/manifests.store.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { digestAbout } from '#domains/registry/tags/tags.model.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { isEligible, rowsOf } from '../views/resolve.service.ts'
import { type Age, defaultHold, type Looks, someLooks, timePlus } from '../views/views.model.ts'
import { tagsWith } from '../views/views.store.ts'
import { mostRules, type PullRule, strictest } from './pull-rules.model.ts'
import { pullRuleTable } from './pull-rules.store.ts'

/** The rules that hold for a caller in a repo: those that are enforced, and those that only observe. */
export type Bound = {
  enforced: readonly PullRule[]
  observed: readonly PullRule[]
  /** Digests that pass all of them. */
  accepted: readonly string[]
}

/** `undefined` where no rule is for the caller, as on a server without any. */
export async function boundBy(work: Work, repo: Pick<RepoRef, 'uid'>): Promise<Bound | undefined> {
  const { app, caller } = work
  if (app.pullRules.isEmpty() || caller.uid === '') return undefined
  return boundAs(work, repo, caller.uid)
}

/** The rules that hold for somebody else. */
export async function boundAs(work: Work, repo: Pick<RepoRef, 'uid'>, identity: string): Promise<Bound | undefined> {
  return boundTo(work, repo, (rule) => binds(rule, repo.uid, identity))
}

/** As if one rule alone held in the repo, and were enforced; `undefined` where it is none of a place that the repo is in. */
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

/** Whether an enforced rule is for somebody in a repo, as it is in the database. */
export async function isBound(reader: Reader, caller: string, repo: string): Promise<boolean> {
  const rules = await pullRuleTable.list.below(reader, rootOf(repo), {}, mostRules)
  return rules.some((rule) => rule.mode !== 'OBSERVE' && binds(rule, repo, caller))
}

function binds({ scopeUid, identities, belowGroup }: PullRule, repo: string, caller: string): boolean {
  if (!isAtOrBelow(repo, scopeUid)) return false
  return belowGroup === '' ? identities.includes(caller) : isAtOrBelow(caller, belowGroup)
}

/** Both hold: what passes has the larger age, and stays count only where they do for both. */
export function together(one: Age, other: Age): Age {
  const countFrom = one.countFrom === 'repo' && other.countFrom === 'repo' ? 'repo' : 'tag'
  return { ms: Math.max(one.ms, other.ms), hold: Math.max(one.hold, other.hold), countFrom }
}

/** How many indexes, or manifests with a blob, are looked at, how many tags of a digest, and how far from it. */
const mostAbove = 64
const mostTags = 50
const mostSteps = 4

/** One look at what rules let through in a repo now; what was found out is kept as long as this is. */
export class Passing {
  readonly #work: Work
  readonly #repo: RepoRef
  readonly #rules: readonly PullRule[]
  readonly #accepted: ReadonlySet<string>
  readonly #known = new Map<string, boolean>()
  readonly #looks: Looks = someLooks()

  constructor(work: Work, repo: RepoRef, rules: readonly PullRule[], accepted: readonly string[]) {
    this.#work = work
    this.#repo = repo
    this.#rules = rules
    this.#accepted = new Set(accepted)
  }

  /** Whether a manifest may be pulled by its digest. */
  async manifest(digest: string, steps = 0): Promise<boolean> {
    const known = this.#known.get(digest)
    if (known !== undefined) return known
    // What is about itself, by way of tags, is not let through by that.
    this.#known.set(digest, false)
    const passes = this.#accepted.has(digest) || (await this.#decide(digest, steps))
    this.#known.set(digest, passes)
    return passes
  }

  /** Whether what a tag stands for may be pulled by it; for what is about another digest, by that. */
  async tag(digest: string, tag: string): Promise<boolean> {
    return this.#accepted.has(digest) || this.#byTag(digest, tag, 0)
  }

  /** Whether a blob may be: some manifest that may be pulled needs it, or lists it. */
  async blob(digest: string): Promise<boolean> {
    return this.#above(digest, undefined, 0)
  }

  async #decide(digest: string, steps: number): Promise<boolean> {
    if (await this.#byTags(digest, steps)) return true
    if (steps === mostSteps) return false
    return (await this.#bySubject(digest, steps)) || this.#above(digest, 1, steps)
  }

  /** What lists it, the oldest first: nothing can be added to that. */
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

  /** Whether it could be pulled, or could have been, by a tag that it has or had. */
  async #byTags(digest: string, steps: number): Promise<boolean> {
    if (this.#looks.left-- <= 0) return false
    const { db } = this.#work.app
    for (const tag of await tagsWith(db, this.#repo, digest, mostTags)) {
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

/** As a rule of pulls for all tags would have it that counts stays under any tag of the repo. */
export async function hasCooled(work: Work, repo: RepoRef, digest: string, days: number): Promise<boolean> {
  const rule: PullRule = {
    ...{ uid: '', scopeUid: repo.uid, name: '', tags: [], exceptTags: [], identities: [], belowGroup: '' },
    ...{ mode: 'DENY', createTime: '', updateTime: '' },
    age: { ms: days * dayMs, hold: defaultHold, countFrom: 'repo' },
  }
  return new Passing(work, repo, [rule], []).manifest(digest)
}
