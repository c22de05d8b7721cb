// Coverage gaps of an image at a moment: packages that no data source covers, and data sources that were out of date.
import { withAllReleases } from '#contents/ecosystems.ts'
import { partsWith } from '#sources/definitions.ts'
import { dayMs, type Gap } from '../image-findings/reports.model.ts'
import type { SourceRead } from '../records/records.store.ts'

/** How far sources reach that speak of some ecosystems. */
export type Coverage = {
  /** When one of them was read first; undefined while none was. */
  began: string | undefined
  /** The last readings to their end, as of a moment. */
  readsAt(time: string): SourceRead[]
  gapsAt(time: string): Gap[]
  /** The moments, in order, from which on there was no gap any more. */
  closed: readonly string[]
}

/** `reads` are those of the sources that may speak of the ecosystems, as `listReads` has them. */
export function coverageOf(ecosystems: readonly string[], reads: readonly SourceRead[], maxAgeDays: number): Coverage {
  const sources = [...Map.groupBy(reads, ({ sourceNo }) => sourceNo).values()].map((all) => {
    return { all, whole: all.filter(({ whole }) => whole) }
  })
  const histories = sources.filter(({ whole }) =>
    whole.some((read) => ecosystems.some((one) => speaksOf(read.ecosystems, one))),
  )
  const gapsAt = (time: string) => ecosystems.flatMap((one) => gapsOf(one, sources, { time, maxAgeDays }))
  const times = histories.flatMap(({ whole }) => whole.map(({ fetchTime }) => fetchTime)).sort()
  const before = (time: string) => new Date(Date.parse(time) - 1).toISOString()
  return {
    began: times[0],
    readsAt: (time) =>
      histories.flatMap(({ whole }) => {
        const read = lastUntil(whole, time)
        return read && ecosystems.some((one) => speaksOf(read.ecosystems, one)) ? [read] : []
      }),
    gapsAt,
    closed: [...new Set(times)].filter((time) => gapsAt(time).length === 0 && gapsAt(before(time)).length > 0),
  }
}

type History = { all: readonly SourceRead[]; whole: readonly SourceRead[] }

function gapsOf(
  ecosystem: string,
  histories: readonly History[],
  { time, maxAgeDays }: { time: string; maxAgeDays: number },
): Gap[] {
  if (ecosystem === '') {
    const message = 'packages of a distribution or kind that no ecosystem is known for'
    return [{ reason: 'NO_SOURCE', subject: '', message }]
  }
  const those = histories.flatMap(({ all, whole }) => {
    const read = lastUntil(whole, time)
    return read && speaksOf(read.ecosystems, ecosystem) ? [{ read, last: lastUntil(all, time) ?? read }] : []
  })
  if (those.length === 0) {
    return [isImported(ecosystem, histories, time) ? importedOnly(ecosystem) : noSource(ecosystem)]
  }
  const missing = missingParts(those.map(({ read: { name } }) => name))
  const parts = missing.map((subject): Gap => {
    return { reason: 'NO_SOURCE', subject, message: `what was read is only a part of what speaks of ${ecosystem}` }
  })
  const failures = those.flatMap(({ read: { name, fetchTime }, last }): Gap[] => {
    if (last.error !== '')
      return [{ reason: 'SOURCE_FAILED', subject: name, message: `of ${fetchTime}: ${last.error}` }]
    const isStale = Date.parse(time) - Date.parse(fetchTime) > maxAgeDays * dayMs
    return isStale ? [{ reason: 'SOURCE_STALE', subject: name, message: `was last read at ${fetchTime}` }] : []
  })
  return [...parts, ...failures]
}

const noSource = (subject: string): Gap => ({ reason: 'NO_SOURCE', subject, message: 'no data source covers it' })

/** An import brings some records, and nobody says whether these are all. */
const importedOnly = (subject: string): Gap => ({
  ...{ reason: 'SOURCE_IMPORTED', subject },
  message: 'compared with imported records only, and there may be others',
})

const isImported = (ecosystem: string, histories: readonly History[], time: string): boolean =>
  histories.some(({ whole }) => {
    const read = lastUntil(whole, time)
    return read !== undefined && speaksOf(read.imported, ecosystem)
  })

/** Which sources were not read of those of which the ones that were are only parts; none when one of these is whole. */
function missingParts(read: readonly string[]): string[] {
  const parts = read.map(partsWith)
  if (parts.some((all) => all.length === 1)) return []
  return [...new Set(parts.flat())].filter((name) => !read.includes(name)).sort()
}

/** The last of them that had happened at a moment; given in order. */
function lastUntil(reads: readonly SourceRead[], time: string): SourceRead | undefined {
  let [low, high] = [0, reads.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (reads[middle]!.fetchTime <= time) low = middle + 1
    else high = middle
  }
  return reads[low - 1]
}

/** Whether a source of these ecosystems speaks of one: without a release all releases are meant. */
export function speaksOf(ecosystems: readonly string[], one: string): boolean {
  return one !== '' && withAllReleases(one).some((each) => ecosystems.includes(each))
}
