// Scan results of images over time: package lists, findings, and data sources that cover the packages.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import type { ContentsRecord, ContentsSpan } from '#domains/registry/images/image-contents.service.ts'
import { chunks } from '#lib/chunks.ts'
import { mostOwn } from '../findings/findings.model.ts'
import { isOwnFullAt, type Known } from '../image-findings/image-findings.model.ts'
import { findKnown } from '../image-findings/image-findings.store.ts'
import { type Gap, listsAtOnce, maxFindings, maxHeld, maxTogether } from '../image-findings/reports.model.ts'
import { createSharedKnown } from '../image-findings/shared-findings.store.ts'
import type { OverLimit, StoredList } from '../lists/lists.model.ts'
import { ecosystemsOfList, findList, findLists, limitsOf } from '../lists/lists.store.ts'
import { ownSource } from '../own-advisories/own-advisories.service.ts'
import { listReads, type SourceRead } from '../records/records.store.ts'
import { type ImageAt, withAccepted } from '../risks/accepted.service.ts'
import { type Coverage, coverageOf, withDistribution } from './coverage.service.ts'

/** Cache of scan results for the lifetime of a request. */
export type Knowledge = {
  /** Reads the results for many images in a few statements, without the locations of packages. */
  preload(contents: readonly ContentsSpan[], organizations: readonly string[]): Promise<void>
  /** Result for the contents of an image. Undefined if the packages were not compared yet, or if no data source covers them. */
  of(contents: ContentsSpan, organizations: readonly string[]): Promise<ImageKnowledge | undefined>
  /** Result for an image at a time. `spans` has the contents of the image, the newest first. */
  at(
    spans: readonly ContentsSpan[],
    organizations: readonly string[],
    time: string,
  ): Promise<ImageKnowledge | undefined>
}

export type ImageKnowledge = {
  distribution: string
  /** Time of the first result. */
  from: string
  /** Present and former findings. These include packages whose versions could not be compared, because they may be vulnerable. */
  found: Known[]
  /** Coverage gaps as of a time. */
  gapsAt(time: string): Gap[]
  /** Times at which the number of gaps fell to zero. */
  closed: readonly string[]
  /** The last complete read of each data source that covers the packages, as of a time. */
  readsAt(time: string): SourceRead[]
}

/**
 * `tooMuch` creates the error that is thrown if a request exceeds the limits on findings. After it, each image that is not in the
 * cache has the same error.
 */
export function createKnowledge({ db, config }: Pick<App, 'db' | 'config'>, tooMuch: () => Error): Knowledge {
  const limited = createLimits(tooMuch)
  const lists = new Map<string, ImageKnowledge | undefined>()
  const shared = createSharedKnown(db)
  const coverages = new Map<string, Promise<Coverage>>()
  const coverageFor = (ecosystems: readonly string[]): Promise<Coverage> => {
    const key = JSON.stringify(ecosystems)
    const coverage =
      coverages.get(key) ??
      listReads(db, ecosystems).then((reads) => coverageOf(ecosystems, reads, config.vulnerabilityMaxAgeDays))
    coverages.set(key, coverage)
    return coverage
  }
  const keep = (key: string, known: ImageKnowledge | undefined, fresh: number): void => {
    limited.keep(fresh, known?.found.length ?? 0)
    lists.set(key, known)
  }
  const readAlone = async (contents: ContentsRecord, organizations: readonly string[]): Promise<void> => {
    limited.check()
    const list = await findList(db, { hash: contents.packages, distribution: contents.distribution })
    if (!list || list.matchTime === '') return keep(keyOf(contents, organizations), undefined, 0)
    const found = await findKnown(db, list.listNo, organizations, maxFindings)
    const [ecosystems, limits] = [await ecosystemsOfList(db, list), await limitsOf(db, [list.listNo])]
    const known = knowledgeOf({ list, found, limits }, contents, await coverageFor(ecosystems))
    keep(keyOf(contents, organizations), known, known?.found.length ?? 0)
  }
  const readTogether = async (some: readonly ContentsRecord[], organizations: readonly string[]): Promise<void> => {
    limited.check()
    const stored = await findLists(
      db,
      some.map(({ packages, distribution }) => ({ hash: packages, distribution })),
    )
    const byKey = new Map(stored.map((list) => [listKey(list.hash, list.distribution), list]))
    const numbers = stored.map(({ listNo }) => listNo)
    const before = shared.size()
    const found = await shared.ofLists(numbers, organizations, maxTogether)
    // If the lists together have too many findings, each list is read alone when it is needed.
    if (!found) return
    limited.look(shared.size() - before)
    const limits = Map.groupBy(await limitsOf(db, numbers), ({ listNo }) => listNo)
    for (const contents of some) {
      const list = byKey.get(listKey(contents.packages, contents.distribution))
      if (!list || list.matchTime === '') {
        keep(keyOf(contents, organizations), undefined, 0)
        continue
      }
      const coverage = await coverageFor(await ecosystemsOfList(db, list))
      const read = { list, found: found.get(list.listNo)!, limits: limits.get(list.listNo) ?? [] }
      keep(keyOf(contents, organizations), knowledgeOf(read, contents, coverage), 0)
    }
  }
  const knowledge: Knowledge = {
    async preload(contents, organizations) {
      const wanted = new Map<string, ContentsRecord>()
      for (const one of contents) {
        const key = keyOf(one, organizations)
        if (one.state === 'known' && !lists.has(key)) wanted.set(key, one)
      }
      for (const some of chunks([...wanted.values()], listsAtOnce)) await readTogether(some, organizations)
    },
    async of(contents, organizations) {
      const key = keyOf(contents, organizations)
      if (!lists.has(key)) await readAlone(contents, organizations)
      const ofList = lists.get(key)
      return ofList && { ...ofList, from: ofList.from > contents.fromTime ? ofList.from : contents.fromTime }
    },
    async at(spans, organizations, time) {
      for (const span of spans) {
        if (span.fromTime > time) continue
        if (span.state !== 'known') return undefined
        const known = await knowledge.of(span, organizations)
        // New contents have no result until their comparison. Until then, the result of the previous contents is used.
        if (known && known.from <= time) return known
      }
      return undefined
    },
  }
  return knowledge
}

/** Limits on the findings of one request. A request that continues after the error reads no further findings. */
function createLimits(tooMuch: () => Error) {
  let [looked, held, isOver] = [0, 0, false]
  const limits = {
    check(): void {
      if (isOver) throw tooMuch()
    },
    look(fresh: number): void {
      looked += fresh
    },
    keep(fresh: number, found: number): void {
      const before = looked + held
      looked += fresh
      held += found
      // The limits apply from the second image on. One image alone never fails.
      isOver ||= before > 0 && (looked > maxFindings || held > maxHeld)
      limits.check()
    },
  }
  return limits
}

const listKey = (hash: string, { id, version }: ContentsRecord['distribution']): string =>
  JSON.stringify([hash, id, version])
const keyOf = ({ packages, distribution, gaps }: ContentsRecord, organizations: readonly string[]): string =>
  JSON.stringify([listKey(packages, distribution), gaps, organizations])

/** Data of one package list. */
type ListRead = { list: StoredList; found: Known[]; limits: readonly OverLimit[] }

function knowledgeOf(
  { list, found, limits }: ListRead,
  { distribution, gaps }: ContentsRecord,
  coverage: Coverage,
): ImageKnowledge | undefined {
  const own = found.filter(({ source }) => source === ownSource).map(({ foundTime }) => foundTime)
  const began = [...(coverage.began === undefined ? [] : [coverage.began]), ...own].sort()[0]
  if (began === undefined) return undefined
  const always = [...gaps.map(unread), ...(found.length < maxFindings ? [] : [truncated])]
  const gapsAt = (time: string) => [
    ...coverage.gapsAt(time).map((gap) => withDistribution(gap, distribution)),
    ...limits.filter(isOverAt(time)).map(() => overLimit),
    ...(own.length >= mostOwn && isOwnFullAt(found, time) ? [ownLimit] : []),
    ...always,
  ]
  const turns = [...new Set([...coverage.closed, ...limits.map(({ untilTime }) => untilTime)])].sort()
  return {
    distribution: distribution.id,
    from: began > list.matchTime ? began : list.matchTime,
    found,
    gapsAt,
    closed: turns.filter((time) => time !== '' && gapsAt(time).length === 0),
    readsAt: coverage.readsAt,
  }
}

/** Coverage gap for a part of an image that could not be read. */
export function unread({ path, reason, message }: ContentsRecord['gaps'][number]): Gap {
  return { reason: 'CONTENTS_INCOMPLETE', subject: path, message: `${reason}: ${message}` }
}

const isOverAt =
  (time: string) =>
  ({ fromTime, untilTime }: OverLimit): boolean =>
    fromTime <= time && (untilTime === '' || untilTime > time)

/** Gap of an image with more findings than are stored for one package list. */
export const overLimit: Gap = {
  reason: 'LIMIT',
  subject: '',
  message: 'the image has more findings than are stored for one image',
}

/** Gap of an image in which one package has more findings from the organization's own advisories than are stored. */
export const ownLimit: Gap = {
  reason: 'LIMIT',
  subject: '',
  message: `more than ${mostOwn - 1} advisories of the organization apply to one of the packages`,
}

/** Gap of an image with more findings than one request reads. */
export const truncated: Gap = { reason: 'TRUNCATED', subject: '', message: 'the image has more findings than the list' }

/**
 * Adds accepted risks to the findings. Returns the same object if there are none. If the image is in several repositories, a risk
 * is accepted only if it was accepted in all of them.
 */
export async function withAcceptedIn(
  reader: Reader,
  knowledge: ImageKnowledge,
  images: readonly ImageAt[],
): Promise<ImageKnowledge> {
  const found = await withAccepted(reader, knowledge.found, images, knowledge.distribution)
  return found.some(({ accepted }) => accepted.length > 0) ? { ...knowledge, found } : knowledge
}
