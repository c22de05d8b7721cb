// Which manifests rules let go. What no rule is about is kept, and so is whatever belongs to something that is kept: what an
// index lists, and what is about something, such as a signature. Nothing that a tag points to goes.
import { linkedFrom, storedManifests } from '#domains/registry/manifests/manifests.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import type { Look } from './kept.service.ts'
import { type LetGo, whys } from './plans.model.ts'
import * as store from './promises.store.ts'
import { type Dated, latestOf, mostMoves, type TagStay, untaggedUntil, untilAfter } from './retention.model.ts'

/** How far up is gone from one manifest; what is below more stays. */
const mostLevels = 50
/** How many manifests may need a blob for it to be counted with what goes. */
const mostUsers = 200

type Own = Omit<LetGo, 'level'>

/** Judges the manifests of a repo in one look; what was found out is kept as long as that. */
export class LettingGo {
  readonly look: Look
  /** Those that stay because it would take too much to decide on them. */
  readonly undecided = new Set<string>()
  readonly #judged = new Map<string, LetGo | undefined>()

  constructor(look: Look) {
    this.look = look
  }

  /** `undefined` for what stays. */
  async of(digest: string, steps = 0): Promise<LetGo | undefined> {
    if (this.#judged.has(digest)) return this.#judged.get(digest)
    if (this.look.isOver) return undefined
    const found = steps > mostLevels ? undefined : await this.#decide(digest, steps)
    // What was not looked at to the end stays.
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

  /** What it belongs to, of that which is in the repo. */
  async #present(digest: string): Promise<string[]> {
    const { look } = this
    const { subjects, indexes } = await look.above(digest)
    const here = await storedManifests(look.reader, look.repo.id, subjects)
    return [...here.keys(), ...indexes]
  }

  /**
   * What rules say of the manifest by itself, when all that it may be a part of has gone: `silent` where none is about it,
   * which only what never was a tag can be and go.
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

  /** Each tag that it has had has to be let go by some rule. */
  #left(stays: readonly TagStay[]): Own | 'kept' {
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

  /** Whether it may go now that a plan has named it: nothing that it belongs to is left, and nothing keeps it by itself. */
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

  /** The bytes of a manifest that goes, and of the blobs that only what goes needs: each counts with the first that needs it. */
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
