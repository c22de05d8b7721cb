// What is known of an image over time: its list of packages, the findings in it, and how far the sources reach.
import type { Reader } from '#db/sql.ts'
import type { ContentsRecord } from '#domains/registry/images/image-contents.service.ts'
import type { Known } from '../known/known.model.ts'
import { findKnown } from '../known/known.store.ts'
import { ecosystemsOfList, findList } from '../lists/lists.store.ts'
import { findingStates } from '../matching/findings.model.ts'
import { ownSource } from '../own/own-advisories.service.ts'
import { listReads, listSources, type SourceRead, type StoredSource } from '../records/records.store.ts'
import { maxFindings } from './reports.model.ts'

/** Lives as long as a request and remembers what it has read. */
export type Knowledge = {
  /** Undefined while nothing follows from what the image contains: it was not compared, or no source speaks of it. */
  of(contents: ContentsRecord, places: readonly string[]): Promise<ImageKnowledge | undefined>
}

export type ImageKnowledge = {
  distribution: string
  /** From when on it is known. */
  from: string
  /** What is certain, at any time; `gaps` is what could not be compared. */
  found: Known[]
  gaps: Known[]
  /** The ecosystems of its packages that no source speaks of; an empty one is a distribution that is not known. */
  uncovered: string[]
  /** The last readings of the sources that apply, as of a moment. */
  readsAt(time: string): SourceRead[]
}

export function createKnowledge(reader: Reader): Knowledge {
  const lists = new Map<string, Promise<ImageKnowledge | undefined>>()
  let sources: Promise<{ all: StoredSource[]; reads: SourceRead[] }> | undefined
  const readSources = async () => ({
    all: await listSources(reader),
    reads: await listReads(reader, '9999'),
  })
  return {
    of(contents, places) {
      const { packages, distribution } = contents
      const key = JSON.stringify([packages, distribution.id, distribution.version, places])
      sources ??= readSources()
      const known = lists.get(key) ?? sources.then((read) => knowledgeOf(reader, contents, places, read))
      lists.set(key, known)
      return known
    },
  }
}

async function knowledgeOf(
  reader: Reader,
  { packages, distribution }: ContentsRecord,
  places: readonly string[],
  { all, reads }: { all: readonly StoredSource[]; reads: readonly SourceRead[] },
): Promise<ImageKnowledge | undefined> {
  const list = await findList(reader, { hash: packages, distribution })
  if (!list || list.matchTime === '') return undefined
  const known = await findKnown(reader, list.listNo, places, maxFindings)
  const ecosystems = await ecosystemsOfList(reader, list.listNo)
  const applies = ({ ecosystems: of }: StoredSource) => ecosystems.some((one) => speaksOf(of, one))
  const numbers = new Set(all.filter(applies).map(({ sourceNo }) => sourceNo))
  const applying = reads.filter(({ sourceNo }) => numbers.has(sourceNo))
  const own = known.filter(({ source }) => source === ownSource).map(({ foundTime }) => foundTime)
  const began = [...applying.map(({ fetchTime }) => fetchTime), ...own].sort()[0]
  if (began === undefined) return undefined
  return {
    distribution: distribution.id,
    from: began > list.matchTime ? began : list.matchTime,
    found: known.filter(({ state }) => state === findingStates.vulnerable),
    gaps: known.filter(({ state }) => state === findingStates.unknown),
    uncovered: ecosystems.filter(
      (one) => !all.some(({ ecosystems: of, fetchTime }) => fetchTime !== '' && speaksOf(of, one)),
    ),
    readsAt: (time) => lastOfEach(applying.filter(({ fetchTime }) => fetchTime <= time)),
  }
}

/** Whether a source of these ecosystems speaks of one: without a release all releases are meant. */
export function speaksOf(ecosystems: readonly string[], one: string): boolean {
  return one !== '' && (ecosystems.includes(one) || ecosystems.includes(one.split(':')[0]!))
}

/** Given in order. */
function lastOfEach(reads: readonly SourceRead[]): SourceRead[] {
  return [...new Map(reads.map((read) => [read.sourceNo, read])).values()]
}
