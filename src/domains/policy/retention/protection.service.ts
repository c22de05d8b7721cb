// Finds the retention rule, hold or tag rule that protects a manifest or a repository. Deletions search in their own transaction.
// The search goes from the manifest up to its parents, and a `RetentionSearch` caches the results.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { subjectOfTag, type TagRepo } from '#domains/registry/tags/tags.model.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import {
  type ContentRules,
  contentRulesAt,
  type Dated,
  datesOf,
  daysAfter,
  enforced,
  type Kept,
  latestOf,
  type Mark,
  mostMoves,
  mostTagsNamed,
  type RetentionRule,
  type TagAssignment,
  type WithPatterns,
} from './retention.model.ts'
import * as store from './retention-locks.store.ts'

type By = { app: Pick<App, 'contentRules'> }

/** Most manifests that one search visits, including parents. A manifest with more parents counts as protected. */
const mostAbove = 1000
const movesAtOnce = 1000
/** Most rows that one search reads, for all manifests together. */
const mostRead = 20_000
/** Number of manifests in one query that searches for a manifest that never had a tag. */
const untaggedAtOnce = 500

/** Search in one repository with a limit on rows. If the limit is reached, the content counts as protected. */
export class RetentionSearch {
  readonly reader: Reader
  readonly contentRules: ContentRules
  /** Retention rules that apply in this search. By default, rules in mode ENFORCE. */
  readonly rules: readonly WithPatterns<RetentionRule>[]
  readonly repo: TagRepo
  readonly now: string
  readonly #alone = new Map<string, Kept | undefined>()
  readonly #assignments = new Map<string, readonly TagAssignment[]>()
  readonly #last = new Map<string, Set<string> | 'too many'>()
  readonly #moves: store.LedgerMove[] = []
  #areAllMoves = false
  #left: number
  /** Another search that reads the moves of the tag history for both searches. */
  readonly #reading: RetentionSearch | undefined

  constructor(
    reader: Reader,
    contentRules: ContentRules,
    repo: TagRepo,
    now: string,
    options: { rules?: RetentionSearch['rules']; moves?: RetentionSearch; most?: number } = {},
  ) {
    this.reader = reader
    this.contentRules = contentRules
    this.repo = repo
    this.now = now
    this.rules = options.rules ?? enforced(contentRules)
    this.#left = options.most ?? mostRead
    this.#reading = options.moves
  }

  /** Creates a search with the rules that the reader sees now, including changes by other servers. */
  static async at(reader: Reader, by: By, repo: TagRepo, now: string): Promise<RetentionSearch> {
    const contentRules = await by.app.contentRules.of(reader, repo.uid, { fresh: true })
    return new RetentionSearch(reader, contentRulesAt(contentRules, repo.uid), repo, now)
  }

  get isOver(): boolean {
    return this.#left <= 0
  }

  /** Counts each row and each query against the limit. */
  async read<T>(rows: Promise<readonly T[]>): Promise<readonly T[]> {
    const found = await rows
    this.#left -= 1 + found.length
    return found
  }

  /** Yields the manifest, then its indexes and subjects, level by level. If there are too many, ends with undefined. */
  async *withAbove(digest: string): AsyncGenerator<string | undefined> {
    const seen = new Set([digest])
    for (const one of seen) {
      if (seen.size > mostAbove || this.isOver) {
        yield undefined
        return
      }
      yield one
      const { subjects, indexes } = await this.above(one)
      for (const above of [...subjects, ...indexes]) seen.add(above)
    }
  }

  /**
   * Parents of a manifest: indexes that list it, and subjects, which may be missing in the repository. Subjects come from the
   * manifest itself, and from the names of cosign tags that have pointed to it. Cosign tags count only if the first tag of the
   * digest was a cosign tag. Otherwise, assigning a cosign tag to older content would protect that content forever.
   */
  async above(digest: string): Promise<{ subjects: readonly string[]; indexes: readonly string[] }> {
    const { reader, repo } = this
    const facts = await store.factsOf(reader, repo.id, digest)
    const assignments = await this.assignments(digest)
    const [came = ''] = assignments.map((one) => one.came).sort()
    const isOfCosign = assignments.some((stay) => stay.came === came && subjectOfTag(stay.tag) !== undefined)
    const named = isOfCosign ? assignments.flatMap(({ tag }) => subjectOfTag(tag) ?? []) : []
    const subjects = new Set(facts?.subject ? [facts.subject, ...named] : named)
    subjects.delete(digest)
    const indexes = await this.read(store.indexesOf(reader, repo.id, digest, mostAbove + 1))
    return { subjects: [...subjects], indexes }
  }

  async assignments(digest: string): Promise<readonly TagAssignment[]> {
    const known = this.#assignments.get(digest)
    if (known) return known
    const assignments = await this.read(store.assignmentsOfDigest(this.reader, this.repo.ledger, digest, mostMoves))
    this.#assignments.set(digest, assignments)
    return assignments
  }

  /** Yields the moves of the tag history, the newest first. If more moves exist than the limit allows, ends with `too many`. */
  async *moves(): AsyncGenerator<store.LedgerMove | 'too many'> {
    if (this.#reading) return yield* this.#reading.moves()
    for (let at = 0; ; at++) {
      if (at === this.#moves.length) await this.#readMoves()
      const move = this.#moves[at]
      if (move) yield move
      else {
        if (!this.#areAllMoves) yield 'too many'
        return
      }
    }
  }

  async #readMoves(): Promise<void> {
    if (this.#areAllMoves || this.isOver || this.#moves.length >= mostMoves) return
    const before = this.#moves.at(-1) ?? { time: '~', tag: '' }
    const moves = await this.read(store.movesBefore(this.reader, this.repo.ledger, before, movesAtOnce))
    this.#moves.push(...moves)
    this.#areAllMoves = moves.length < movesAtOnce
  }

  /** Protection of the manifest itself, without its parents. */
  async alone(digest: string): Promise<Kept | undefined> {
    if (this.#alone.has(digest)) return this.#alone.get(digest)
    const kept = await this.#ownProtection(digest)
    this.#alone.set(digest, kept)
    return kept
  }

  async #ownProtection(digest: string): Promise<Kept | undefined> {
    const { contentRules, reader, repo, now } = this
    const assignments = await this.assignments(digest)
    const names = [...new Set(assignments.map(({ tag }) => tag))]
    const tags = names.slice(0, mostTagsNamed)
    const hold = contentRules.holds.find((one) => holdCovers(one, digest, names))
    if (hold) return { by: 'HELD', until: '', rule: hold.uid, tags, with: digest }
    const present = await this.read(namesWith(reader, repo, digest, mostMoves))
    // If not all tags were read, a rule may cover a tag that is missing here.
    if (this.isOver || assignments.length >= mostMoves || present.length >= mostMoves) return undecided(digest, tags)
    const immutable = contentRules.tagRules.find(({ says, isAbout }) => says.immutable && present.some(isAbout))
    if (immutable) {
      const immovable = present.filter(immutable.isAbout).slice(0, mostTagsNamed)
      return { by: 'IMMUTABLE', until: '', rule: immutable.uid, tags: immovable, with: digest }
    }
    const date = latestOf(await this.#dates(digest, assignments))
    if (date && date.until > now) return { by: 'PROMISED', ...date, tags, with: digest }
    for (const rule of this.rules) {
      if (rule.says.keepLast === 0 || !names.some((tag) => isCounted(rule, tag))) continue
      const last = await this.#lastOf(rule)
      if (last === 'too many') return undecided(digest, tags, rule.uid)
      if (last.has(digest)) return { by: 'LAST', until: '', rule: rule.uid, tags, with: digest }
    }
    return undefined
  }

  /** Dates until which a manifest is protected: the stored date, and dates from current and former rules. */
  async #dates(digest: string, assignments: readonly TagAssignment[]): Promise<Dated[]> {
    const { reader, repo, now, rules } = this
    const stored = await store.findLock(reader, repo.id, digest)
    const untaggedSince =
      assignments.length === 0 ? (await store.factsOf(reader, repo.id, digest))?.createTime : undefined
    const given = datesOf({ rules, former: this.contentRules.former }, { assignments, untaggedSince }, now)
    return stored ? [stored, ...given] : given
  }

  /** The newest `keep_last` different digests of the tags that the rule covers. */
  async #lastOf(rule: WithPatterns<RetentionRule>): Promise<Set<string> | 'too many'> {
    const { uid, says } = rule
    const known = this.#last.get(uid)
    if (known) return known
    let last: Set<string> | 'too many' = new Set<string>()
    for await (const move of this.moves()) {
      if (move === 'too many') {
        last = await this.#lastByTags(rule)
        break
      }
      if (move.digest === '' || !isCounted(rule, move.tag)) continue
      last.add(move.digest)
      if (last.size >= says.keepLast) break
    }
    this.#last.set(uid, last)
    return last
  }

  /**
   * Reads each tag on its own. Needed if other tags move so often that the newest moves of the history do not go back far enough.
   */
  async #lastByTags(rule: WithPatterns<RetentionRule>): Promise<Set<string> | 'too many'> {
    const { reader, repo } = this
    const most = rule.says.keepLast
    const names = await this.read(store.tagsOf(reader, repo.ledger, mostMoves))
    if (names.length >= mostMoves) return 'too many'
    const moves: { time: string; digest: string }[] = []
    // Only assignments after this time are known for all tags.
    let sure = ''
    for (const tag of names.filter((one) => isCounted(rule, one))) {
      if (this.isOver) return 'too many'
      const some = await this.read(store.assignmentsOfTag(reader, repo.ledger, tag, 2 * most))
      moves.push(...some)
      if (some.length === 2 * most && some.at(-1)!.time > sure) sure = some.at(-1)!.time
    }
    const last = new Set<string>()
    for (const { time, digest } of moves.sort((a, b) => (a.time < b.time ? 1 : -1))) {
      if (time < sure) return 'too many'
      last.add(digest)
      if (last.size >= most) break
    }
    return last
  }
}

export function undecided(digest: string, tags: string[] = [], rule = ''): Kept {
  return { by: 'UNDECIDED', until: '', rule, tags, with: digest }
}

export function holdCovers(hold: WithPatterns<Mark>, digest: string, names: readonly string[]): boolean {
  return hold.digest === '' ? names.some(hold.isAbout) : hold.digest === digest
}

/**
 * True if `keep_last` of the rule counts the digests of the tag. Cosign tags do not count, because their digests are protected
 * together with their subject.
 */
function isCounted({ isAbout }: WithPatterns<RetentionRule>, tag: string): boolean {
  return isAbout(tag) && subjectOfTag(tag) === undefined
}

/**
 * Current protection of a manifest: by a rule or hold on the manifest itself, on an index that lists it, or on a subject that it
 * signs, at any level. A stored date protects the manifest even if its rule was deleted. Returns undefined if nothing protects
 * it.
 */
export async function protectionOf(look: RetentionSearch, digest: string): Promise<Kept | undefined> {
  const { contentRules, reader, repo, now, rules } = look
  const hasNoRules =
    rules.length + contentRules.former.length + contentRules.tagRules.length + contentRules.holds.length === 0
  if (hasNoRules && !(await store.findLatestLock(reader, repo.id, now))) return undefined
  for await (const one of look.withAbove(digest)) {
    const kept = one === undefined ? undecided(digest) : await look.alone(one)
    if (kept) return kept
  }
  return listedOf(look, digest)
}

/**
 * Tag rule with `keep_listed` that protects the manifest. A tag of the rule points to an index that lists the manifest, directly
 * or through other indexes.
 */
async function listedOf(look: RetentionSearch, digest: string): Promise<Kept | undefined> {
  const rules = look.contentRules.tagRules.filter(({ says }) => says.keepListed)
  if (rules.length === 0) return undefined
  const seen = new Set([digest])
  for (const one of seen) {
    if (seen.size > mostAbove || look.isOver) return undecided(digest, [], rules[0]!.uid)
    if (one !== digest) {
      const names = await look.read(namesWith(look.reader, look.repo, one, mostMoves))
      const rule = rules.find(({ isAbout }) => names.some(isAbout))
      if (rule) {
        const tags = names.filter(rule.isAbout).slice(0, mostTagsNamed)
        return { by: 'LISTED', until: '', rule: rule.uid, tags, with: one }
      }
      if (names.length >= mostMoves) return undecided(digest, [], rules[0]!.uid)
    }
    const indexes = await look.read(store.indexesOf(look.reader, look.repo.id, one, mostAbove + 1))
    for (const index of indexes) seen.add(index)
  }
  return undefined
}

/** Returns the hold on the manifest or on one of its parents, even if rules protect it too. No call can override a hold. */
export async function holdOn(look: RetentionSearch, digest: string): Promise<Kept | undefined> {
  const { holds } = look.contentRules
  if (holds.length === 0) return undefined
  for await (const one of look.withAbove(digest)) {
    // If there are too many parents to check, the manifest counts as held.
    if (one === undefined) return undecided(digest, [], holds[0]!.uid)
    const assignments = await look.assignments(one)
    const names = [...new Set(assignments.map(({ tag }) => tag))]
    const tags = names.slice(0, mostTagsNamed)
    const hold = holds.find((each) => holdCovers(each, one, names))
    if (hold) return { by: 'HELD', until: '', rule: hold.uid, tags, with: one }
    if (look.isOver || assignments.length >= mostMoves) return undecided(one, tags, holds[0]!.uid)
  }
  return undefined
}

/** Hold on any manifest of the repository. Returns undefined if there is none. */
export async function holdIn(look: RetentionSearch): Promise<Kept | undefined> {
  const { holds } = look.contentRules
  const held = (rule: string, digest: string): Kept => ({ by: 'HELD', until: '', rule, tags: [], with: digest })
  for (const { uid, digest } of holds) {
    if (digest !== '' && (await store.factsOf(look.reader, look.repo.id, digest))) return held(uid, digest)
  }
  const ofTags = holds.filter(({ tags }) => tags.length > 0)
  if (ofTags.length === 0) return undefined
  const isNamed = (tag: string): boolean => ofTags.some(({ isAbout }) => isAbout(tag))
  for await (const found of digestsOf(look, isNamed)) {
    if (found === 'too many') return undecided('', [], ofTags[0]!.uid)
    return held(ofTags.find(({ isAbout }) => isAbout(found.tag))!.uid, found.digest)
  }
  return undefined
}

/**
 * Returns the protection that prevents deletion of a repository. The repository counts as protected if the limit on rows is
 * reached first.
 */
export async function protectionIn(look: RetentionSearch): Promise<Kept | undefined> {
  const { contentRules, reader, repo, now, rules } = look
  const stored = await store.findLatestLock(reader, repo.id, now)
  if (stored) return { by: 'PROMISED', ...stored, tags: [], with: '' }
  const immutable = contentRules.tagRules.filter(({ says }) => says.immutable)
  if (rules.length + contentRules.former.length + immutable.length + contentRules.holds.length === 0) return undefined
  const sayings = [...rules, ...contentRules.former, ...immutable, ...contentRules.holds]
  const isNamed = (tag: string): boolean => sayings.some(({ isAbout }) => isAbout(tag))
  for await (const found of digestsOf(look, isNamed)) {
    const kept =
      found === 'too many'
        ? undecided('', [], (rules[0] ?? contentRules.former[0])?.uid)
        : await look.alone(found.digest)
    if (kept) return kept
  }
  // Some manifests never had a tag and have no stored date. They are older than the rule, or than its present number of days.
  const dated = [...rules.map((one) => ({ ...one, endTime: now })), ...contentRules.former].filter(
    ({ says }) => says.untaggedDays > 0,
  )
  if (dated.length === 0) return undefined
  const digest = await untaggedIn(
    look,
    dated.map(({ says, endTime }) => ({ after: daysAfter(now, -says.untaggedDays), until: endTime })),
  )
  if (digest === 'too many') return undecided('', [], dated[0]!.uid)
  return digest === undefined ? undefined : look.alone(digest)
}

/**
 * Manifest that was pushed within one of the time ranges and never had a tag. Returns `too many` if the limit on rows is reached.
 */
async function untaggedIn(look: RetentionSearch, came: readonly store.PushPeriod[]): Promise<string | undefined> {
  for (let behind = ''; ; ) {
    const slice = { behind, most: untaggedAtOnce }
    const some = await look.read(store.listUntagged(look.reader, look.repo, came, slice))
    const found = some.find(({ isUntagged }) => isUntagged)
    if (found) return found.digest
    if (some.length < untaggedAtOnce) return undefined
    if (look.isOver) return 'too many'
    behind = some.at(-1)!.digest
  }
}

/** Yields each manifest of the repository to which a matching tag points or has pointed, once, with one of these tags. */
async function* digestsOf(
  look: RetentionSearch,
  isNamed: (tag: string) => boolean,
): AsyncGenerator<{ tag: string; digest: string } | 'too many'> {
  const [tags, digests] = [new Set<string>(), new Set<string>()]
  for await (const move of look.moves()) {
    if (move === 'too many' || look.isOver) {
      yield 'too many'
      return
    }
    if (tags.has(move.tag)) continue
    tags.add(move.tag)
    if (!isNamed(move.tag)) continue
    const found = await look.read(store.digestsUnder(look.reader, look.repo, move.tag, mostMoves))
    for (const { digest, here } of found) {
      if (here === 0 || digests.has(digest)) continue
      digests.add(digest)
      yield { tag: move.tag, digest }
    }
    // The limit was reached, so some digests of the tag were not read.
    if (found.length >= mostMoves) yield 'too many'
  }
}
