// What is known of an image over time: its list of packages, the findings in it, and how far the sources reach.
import type { App } from '#app.ts'
import type { ContentsRecord, ContentsSpan } from '#domains/registry/images/image-contents.service.ts'
import { isOwnFullAt, type Known } from '../known/known.model.ts'
import { findKnown } from '../known/known.store.ts'
import { limitsOf } from '../lists/limits.store.ts'
import type { OverLimit } from '../lists/lists.model.ts'
import { ecosystemsOfList, findList } from '../lists/lists.store.ts'
import { mostOwn } from '../matching/findings.model.ts'
import { ownSource } from '../own/own-advisories.service.ts'
import { listReads, type SourceRead } from '../records/records.store.ts'
import { coverageOf } from './coverage.service.ts'
import { type Gap, maxFindings } from './reports.model.ts'

/** Lives as long as a request and remembers what it has read. */
export type Knowledge = {
  /** Undefined while nothing follows from what the image contains: it was not compared, or no source speaks of it. */
  of(contents: ContentsSpan, places: readonly string[]): Promise<ImageKnowledge | undefined>
  /** What was known at a moment of an image, of which the newest contents come first. */
  at(spans: readonly ContentsSpan[], places: readonly string[], time: string): Promise<ImageKnowledge | undefined>
}

export type ImageKnowledge = {
  distribution: string
  /** From when on it is known. */
  from: string
  /** What was found at any time, what could not be compared too: it may be vulnerable. */
  found: Known[]
  /** Where nothing can be said otherwise, as of a moment. */
  gapsAt(time: string): Gap[]
  /** The moments from which on there was no gap any more. */
  closed: readonly string[]
  /** The last readings of the sources that apply, as of a moment. */
  readsAt(time: string): SourceRead[]
}

/** `tooMuch` makes the error of a question about more than is looked at. */
export function createKnowledge({ db, config }: Pick<App, 'db' | 'config'>, tooMuch: () => Error): Knowledge {
  let looked = 0
  const count = (known: ImageKnowledge | undefined) => {
    const before = looked
    looked += known?.found.length ?? 0
    // One image alone is told as far as it goes.
    if (before > 0 && looked > maxFindings) throw tooMuch()
    return known
  }
  const lists = new Map<string, Promise<ImageKnowledge | undefined>>()
  const reads = new Map<string, Promise<SourceRead[]>>()
  const readsFor = (ecosystems: readonly string[]) => {
    const key = JSON.stringify(ecosystems)
    const found = reads.get(key) ?? listReads(db, ecosystems)
    reads.set(key, found)
    return found
  }
  const knowledge: Knowledge = {
    async of(contents, places) {
      const { packages, distribution, gaps } = contents
      const key = JSON.stringify([packages, distribution.id, distribution.version, gaps, places])
      const known = lists.get(key) ?? knowledgeOf({ db, config }, contents, places, readsFor).then(count)
      lists.set(key, known)
      const ofList = await known
      return ofList && { ...ofList, from: ofList.from > contents.fromTime ? ofList.from : contents.fromTime }
    },
    async at(spans, places, time) {
      for (const span of spans) {
        if (span.fromTime > time) continue
        if (span.state !== 'known') return undefined
        const known = await knowledge.of(span, places)
        // What is read anew counts from when it has been compared; until then what was known before does.
        if (known && known.from <= time) return known
      }
      return undefined
    },
  }
  return knowledge
}

async function knowledgeOf(
  { db, config }: Pick<App, 'db' | 'config'>,
  { packages, distribution, gaps }: ContentsRecord,
  places: readonly string[],
  readsFor: (ecosystems: readonly string[]) => Promise<SourceRead[]>,
): Promise<ImageKnowledge | undefined> {
  const list = await findList(db, { hash: packages, distribution })
  if (!list || list.matchTime === '') return undefined
  const found = await findKnown(db, list.listNo, places, maxFindings)
  const ecosystems = await ecosystemsOfList(db, list.listNo)
  const coverage = coverageOf(ecosystems, await readsFor(ecosystems), config.vulnerabilityMaxAgeDays)
  const own = found.filter(({ source }) => source === ownSource).map(({ foundTime }) => foundTime)
  const began = [...(coverage.began === undefined ? [] : [coverage.began]), ...own].sort()[0]
  if (began === undefined) return undefined
  const limits = await limitsOf(db, list.listNo)
  const always = [...gaps.map(unread), ...(found.length < maxFindings ? [] : [truncated])]
  const gapsAt = (time: string) => [
    ...coverage.gapsAt(time),
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

/** A part of an image that could not be read, as a gap. */
export function unread({ path, reason, message }: ContentsRecord['gaps'][number]): Gap {
  return { reason: 'CONTENTS_INCOMPLETE', subject: path, message: `${reason}: ${message}` }
}

const isOverAt =
  (time: string) =>
  ({ fromTime, untilTime }: OverLimit): boolean =>
    fromTime <= time && (untilTime === '' || untilTime > time)

/** More is found in its packages than is kept of one list of packages. */
export const overLimit: Gap = {
  reason: 'LIMIT',
  subject: '',
  message: 'more is found in its packages than is kept of one image',
}

/** More of an organisation's own advisories are about one of its packages than are kept of one. */
export const ownLimit: Gap = {
  reason: 'LIMIT',
  subject: '',
  message: `more than ${mostOwn - 1} advisories of the organisation are about one of its packages`,
}

/** More is found than is looked at. */
export const truncated: Gap = { reason: 'TRUNCATED', subject: '', message: 'there are more findings than are listed' }
