// Decides which manifests retention rules delete. A manifest with a tag stays, and so does one that no rule covers. The children
// of an index and referrers, such as signatures, stay as long as their parent does.
import { linkedFrom, storedManifests } from '#domains/registry/manifests/manifests.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import type { Look } from './kept.service.ts'
import { type LetGo, whys } from './plans.model.ts'
import { type Dated, latestOf, mostMoves, type TagAssignment, untaggedUntil, untilAfter } from './retention.model.ts'
import * as store from './retention-locks.store.ts'

/** Most levels of parents that are followed up from one manifest. A manifest with more levels stays. */
const mostLevels = 50
/** Limit on the manifests that need a blob. If as many or more need it, its bytes are not counted as freed. */
const mostUsers = 200

type Own = Omit<LetGo, 'level'>

/** Judges the manifests of a repository within the row budget of one look, and caches the verdicts. */
export class LettingGo {
  readonly look: Look
  /** Manifests that stay because a decision on them would need too many reads. */
  readonly undecided = new Set<string>()
  readonly #judged = new Map<string, LetGo | undefined>()

  constructor(look: Look) {
    this.look = look
  }

  /** Returns undefined if the manifest stays. */
  async of(digest: string, steps = 0): Promise<LetGo | undefined> {
    if (this.#judged.has(digest)) return this.#judged.get(digest)
    if (this.look.isOver) return undefined
    const found = steps > mostLevels ? undefined : await this.#decide(digest, steps)
    // A manifest stays if the budget ran out before it was judged completely.
    const verdict = this.look.isOver ? undefined : found
    if (this.look.isOver || steps > mostLevels) this.undecided.add(digest)
    this.#judged.set(digest, verdict)
    return verdict
  }

  async #decide(digest: string, steps: number): Promise<LetGo | undefined> {
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
    return partOf === '' ? undefined : { why: whys.PART, rule: '', until: '', partOf, level }
  }

  /** Parents of the manifest that the repository has: its subjects, and the indexes that list it. */
  async #present(digest: string): Promise<string[]> {
    const { look } = this
    const { subjects, indexes } = await look.above(digest)
    const here = await storedManifests(look.reader, look.repo.id, subjects)
    return [...here.keys(), ...indexes]
  }

  /**
   * Verdict of the rules on the manifest alone, as if all of its parents were deleted. `silent` means that no rule covers it;
   * only a manifest that never had a tag can be deleted with that verdict, as part of a parent.
   */
  async #own(digest: string): Promise<Own | 'kept' | 'silent'> {
    const { look } = this
    if ((await namesWith(look.reader, look.repo, digest, 1)).length > 0) return 'kept'
    const kept = await look.alone(digest)
    if (kept?.by === 'UNDECIDED') this.undecided.add(digest)
    if (kept) return 'kept'
    const stays = await look.stays(digest)
    if (stays.length >= mostMoves) {
      this.undecided.add(digest)
      return 'kept'
    }
    return stays.length === 0 ? this.#untagged(digest) : this.#left(stays)
  }

  async #untagged(digest: string): Promise<Own | 'kept' | 'silent'> {
    const { look } = this
    const facts = await store.factsOf(look.reader, look.repo.id, digest)
    if (!facts) return 'kept'
    const date = latestOf(look.rules.map((rule) => untaggedUntil(rule, facts.createTime)))
    return date ? expired(date) : 'silent'
  }

  /**
   * Every tag that the manifest has had must be covered by a rule with `keep_days_after` or `keep_last`. Otherwise the manifest
   * stays.
   */
  #left(stays: readonly TagAssignment[]): Own | 'kept' {
    const { rules } = this.look
    const dates: Dated[] = []
    let notLast = ''
    for (const { tag, left } of stays) {
      const about = rules.filter(({ says, isAbout }) => (says.keepDaysAfter > 0 || says.keepLast > 0) && isAbout(tag))
      if (about.length === 0) return 'kept'
      dates.push(...about.map((rule) => ({ until: untilAfter(rule, left), rule: rule.uid })))
      notLast ||= about.find(({ says }) => says.keepLast > 0)?.uid ?? ''
    }
    const date = latestOf(dates)
    return date ? expired(date) : { why: whys.NOT_LAST, rule: notLast, until: '', partOf: '' }
  }

  /** True if a manifest that a plan names can be deleted now: all of its parents are gone, and nothing protects it directly. */
  async mayGo(digest: string, { partOf }: Pick<LetGo, 'partOf'>, isGone: (above: string) => Promise<boolean>) {
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
   * Bytes of a deleted manifest and of blobs that only deleted manifests need. A shared blob counts once, with the lowest digest.
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

const expired = ({ until, rule }: Dated): Own => ({ why: whys.EXPIRED, rule, until, partOf: '' })
