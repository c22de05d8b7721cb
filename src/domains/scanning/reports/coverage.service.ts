// Coverage gaps of an image at a time. Causes are packages that no data source covers, and data sources that were out of date.
import { withAllReleases } from '#contents/ecosystems.ts'
import type { Distribution } from '#contents/packages.ts'
import { neededSources, partsWith } from '#sources/definitions.ts'
import { dayMs, type Gap } from '../image-findings/reports.model.ts'
import type { SourceRead } from '../records/records.store.ts'

/** Data sources that cover some ecosystems, over time. */
export type Coverage = {
  /** Time of the first complete read of a data source. Undefined if no source was read completely. */
  began: string | undefined
  /** The last complete read of each source, as of a time. */
  readsAt(time: string): SourceRead[]
  gapsAt(time: string): Gap[]
  /** Times at which the number of gaps fell to zero, in order. */
  closed: readonly string[]
}

/** `reads` has the reads of data sources that can cover the ecosystems, from `listReads`. */
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
    return [{ reason: 'NO_SOURCE', subject: '', message: 'packages of a distribution that OSV has no advisories for' }]
  }
  const those = histories.flatMap(({ all, whole }) => {
    const read = lastUntil(whole, time)
    return read && speaksOf(read.ecosystems, ecosystem) ? [{ read, last: lastUntil(all, time) ?? read }] : []
  })
  if (those.length === 0) {
    return [isImported(ecosystem, histories, time) ? importedOnly(ecosystem) : noSource(ecosystem, histories, time)]
  }
  const missing = missingParts(those.map(({ read: { name } }) => name))
  const parts = missing.map((subject): Gap => {
    return {
      reason: 'NO_SOURCE',
      subject,
      message: `this data source has a part of the advisories for ${ecosystem} and was not read`,
    }
  })
  const failures = those.flatMap(({ read: { name, fetchTime }, last }): Gap[] => {
    if (last.error !== '')
      return [
        {
          reason: 'SOURCE_FAILED',
          subject: name,
          message: `the last attempt to read it failed, so its data is from ${fetchTime}: ${last.error}`,
        },
      ]
    const isStale = Date.parse(time) - Date.parse(fetchTime) > maxAgeDays * dayMs
    return isStale
      ? [
          {
            reason: 'SOURCE_STALE',
            subject: name,
            message: `was last read at ${fetchTime}, more than ${maxAgeDays} days ago`,
          },
        ]
      : []
  })
  return [...parts, ...failures]
}

/** The same gap with the reason why no data source covers the distribution. Other gaps are returned as they are. */
export function withDistribution(gap: Gap, { id, version }: Distribution): Gap {
  if (gap.reason !== 'NO_SOURCE' || gap.subject !== '') return gap
  if (id === '') return { ...gap, message: 'packages of an unknown distribution, because the image does not name one' }
  const name = version === '' ? `${id} without a version` : `${id} ${version}`
  return { ...gap, message: `OSV has no advisories for ${name}, so its packages were not compared` }
}

/** Gap of an ecosystem without a data source, with the reason if its database of OSV could not be read so far. */
function noSource(subject: string, histories: readonly History[], time: string): Gap {
  const [name] = neededSources([subject])
  const last = histories.flatMap(({ all }) => lastUntil(all, time) ?? []).find((read) => read.name === name)
  const message =
    last && last.error !== ''
      ? `its data source ${name} was not read completely yet: ${last.error}`
      : 'no data source covers this ecosystem'
  return { reason: 'NO_SOURCE', subject, message }
}

/** Gap of an ecosystem with imported records only. An import need not contain all records. */
const importedOnly = (subject: string): Gap => ({
  ...{ reason: 'SOURCE_IMPORTED', subject },
  message: 'compared only with imported advisories, which may be incomplete',
})

const isImported = (ecosystem: string, histories: readonly History[], time: string): boolean =>
  histories.some(({ whole }) => {
    const read = lastUntil(whole, time)
    return read !== undefined && speaksOf(read.imported, ecosystem)
  })

/**
 * Names of data sources that were not read but belong to the same data as the read ones. Empty if one of the read sources
 * contains all of the data.
 */
function missingParts(read: readonly string[]): string[] {
  const parts = read.map(partsWith)
  if (parts.some((all) => all.length === 1)) return []
  return [...new Set(parts.flat())].filter((name) => !read.includes(name)).sort()
}

/** The last read at or before a time. `reads` must be in order. */
function lastUntil(reads: readonly SourceRead[], time: string): SourceRead | undefined {
  let [low, high] = [0, reads.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (reads[middle]!.fetchTime <= time) low = middle + 1
    else high = middle
  }
  return reads[low - 1]
}

/** True if a source of these ecosystems covers the ecosystem `one`. An ecosystem without a release covers all of its releases. */
function speaksOf(ecosystems: readonly string[], one: string): boolean {
  return one !== '' && withAllReleases(one).some((each) => ecosystems.includes(each))
}
