// Decides which manifests retention rules delete. A manifest is kept if it has a tag, or if no rule covers it. Manifests listed
// by an index, and referrers such as signatures, are kept as long as their parent.
import { linkedFrom, storedManifests } from '#domains/registry/manifests/manifests.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { type DeletionDecision, deletionReasons } from './plans.model.ts'
import type { RetentionSearch } from './protection.service.ts'
import { type Dated, latestOf, mostMoves, type TagAssignment, untaggedUntil, untilAfter } from './retention.model.ts'
import * as store from './retention-locks.store.ts'

/** Most levels of parents that are followed from one manifest. A manifest with more levels is kept. */
const mostLevels = 50
/**
 * Most manifests that need a blob and are examined. If as many or more manifests need it, the bytes of the blob are not counted
 * as freed.
 */
const mostUsers = 200

type Own = Omit<DeletionDecision, 'level'>

/** Decides on the manifests of a repository within the row budget of one search, and caches the decisions. */
export class DeletionDecisions {
  readonly look: RetentionSearch
  /** Manifests that are kept because a decision on them would need too many reads. */
  readonly undecided = new Set<string>()
  readonly #judged = new Map<string, DeletionDecision | undefined>()

  constructor(look: RetentionSearch) {
    this.look = look
  }

  /** Decision to delete a manifest. Returns undefined if the manifest is kept. */
  async of(digest: string, steps = 0): Promise<DeletionDecision | undefined> {
    if (this.#judged.has(digest)) return this.#judged.get(digest)
    if (this.look.isOver) return undefined
    const found = steps > mostLevels ? undefined : await this.#decide(digest, steps)
    // If the budget ran out before the decision was complete, the manifest is kept.
    const verdict = this.look.isOver ? undefined : found
    if (this.look.isOver || steps > mostLevels) this.undecided.add(digest)
    this.#judged.set(digest, verdict)
    return verdict
  }

  async #decide(digest: string, steps: number): Promise<DeletionDecision | undefined> {
    const own = await this.#own(digest)
    if (own === 'kept') return undefined
    let level = 0
    let partOf = ''
    for (const above of await this.#present(digest)) {
      const verdict = await this.of(above, steps + 1)
      if (!verdict) return undefined
      level = Math.max(level, verdict.level + 1)
      partOf ||= above
    }
    if (own !== 'silent') return { ...own, level }
    return partOf === '' ? undefined : { why: deletionReasons.PART, rule: '', until: '', partOf, level }
  }

  /** Parents of the manifest that are in the repository: its subjects, and the indexes that list it. */
  async #present(digest: string): Promise<string[]> {
    const { look } = this
    const { subjects, indexes } = await look.above(digest)
    const here = await storedManifests(look.reader, look.repo.id, subjects)
    return [...here.keys(), ...indexes]
  }

  /**
   * Decision of the rules on the manifest alone, as if all of its parents were deleted. `silent` means that no rule covers the
   * manifest. Such a manifest can be deleted only with a parent, and only if it never had a tag.
   */
  async #own(digest: string): Promise<Own | 'kept' | 'silent'> {
    const { look } = this
    if ((await namesWith(look.reader, look.repo, digest, 1)).length > 0) return 'kept'
    const kept = await look.alone(digest)
    if (kept?.by === 'UNDECIDED') this.undecided.add(digest)
    if (kept) return 'kept'
    const assignments = await look.assignments(digest)
    if (assignments.length >= mostMoves) {
      this.undecided.add(digest)
      return 'kept'
    }
    return assignments.length === 0 ? this.#untagged(digest) : this.#left(assignments)
  }

  async #untagged(digest: string): Promise<Own | 'kept' | 'silent'> {
    const { look } = this
    const facts = await store.factsOf(look.reader, look.repo.id, digest)
    if (!facts) return 'kept'
    const date = latestOf(look.rules.map((rule) => untaggedUntil(rule, facts.createTime)))
    return date ? expired(date) : 'silent'
  }

  /** The manifest is kept unless each tag that it has had is covered by a rule with `keep_days_after` or `keep_last`. */
  #left(assignments: readonly TagAssignment[]): Own | 'kept' {
    const { rules } = this.look
    const dates: Dated[] = []
    let notLast = ''
    for (const { tag, left } of assignments) {
      const about = rules.filter(({ says, isAbout }) => (says.keepDaysAfter > 0 || says.keepLast > 0) && isAbout(tag))
      if (about.length === 0) return 'kept'
      dates.push(...about.map((rule) => ({ until: untilAfter(rule, left), rule: rule.uid })))
      notLast ||= about.find(({ says }) => says.keepLast > 0)?.uid ?? ''
    }
    const date = latestOf(dates)
    return date ? expired(date) : { why: deletionReasons.NOT_LAST, rule: notLast, until: '', partOf: '' }
  }

  /**
   * True if a manifest in a plan can be deleted now: all of its parents are deleted, and nothing protects the manifest itself.
   */
  async mayGo(
    digest: string,
    { partOf }: Pick<DeletionDecision, 'partOf'>,
    isGone: (above: string) => Promise<boolean>,
  ) {
    if ((await this.#present(digest)).length > 0) return false
    const own = await this.#own(digest)
    const passes = own === 'silent' ? partOf !== '' && (await isGone(partOf)) : own !== 'kept'
    return passes && !this.look.isOver
  }

  async #allGo(digests: readonly string[]): Promise<boolean> {
    for (const digest of digests) if (!(await this.of(digest))) return false
    return true
  }

  /**
   * Freed bytes: of a deleted manifest, and of blobs that only deleted manifests need. A shared blob counts once, for the lowest
   * digest.
   */
  async bytesOf(digest: string): Promise<number> {
    const { reader, repo } = this.look
    let bytes = (await store.factsOf(reader, repo.id, digest))?.size ?? 0
    for (const blob of await this.look.read(store.blobsOf(reader, repo.id, digest))) {
      if (this.look.isOver) break
      const wanted = { digest: blob.digest, most: mostUsers }
      const users = [...(await this.look.read(linkedFrom(reader, repo.id, wanted)))].sort()
      if (users[0] !== digest || users.length === mostUsers) continue
      if (await this.#allGo(users)) bytes += blob.size
    }
    return bytes
  }
}

const expired = ({ until, rule }: Dated): Own => ({ why: deletionReasons.EXPIRED, rule, until, partOf: '' })
