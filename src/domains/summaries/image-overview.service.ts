// Images of a group by their worst severity, with the reasons why images were not scanned and the age of the data sources.
import type { Call } from '#app.ts'
import { toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { tagsBelow } from '#domains/registry/tags/tags.service.ts'
import { gapText } from '#domains/scanning/reports/result-coverage.model.ts'
import { chunks } from '#lib/chunks.ts'
import { type CountedImage, countVulnerabilities, createCounts } from './counted-vulnerabilities.service.ts'
import { mostListed, overviewMs, type SeverityCounts, severityNames, tagsOfOverview } from './summaries.model.ts'
import { storedImages } from './summaries.store.ts'
import { type TaggedImage, taggedImages } from './tagged-images.service.ts'

export type WorstImage = { repoUid: string; path: string; tag: string; digest: string; vulnerabilities: SeverityCounts }

export type ImageOverview = {
  examined: number
  tags: number
  incomplete: boolean
  images: SeverityCounts
  clean: number
  partial: number
  notScanned: number
  reasons: { text: string; images: number }[]
  worst: WorstImage[]
  sources: { name: string; fetchTime: string; problem: string }[]
}

type Examined = TaggedImage & { counted: CountedImage }

export async function getImageOverview(call: Call, group: string): Promise<ImageOverview> {
  const { db } = call.app
  const { images, isCut } = await taggedImages(call, group, tagsOfOverview)
  const { examined, isLate } = await examine(call, images)
  const { count: tags } = await tagsBelow(db, group)
  const worst = examined
    .filter(({ counted }) => counted.counts && severityNames.some((name) => counted.counts![name] > 0))
    .sort((a, b) => compareCounts(b.counted.counts!, a.counted.counts!))
    .slice(0, mostListed)
  return {
    ...{ examined: examined.length, tags, incomplete: isCut || isLate },
    ...countImages(examined),
    reasons: reasonsOf(examined),
    worst: await Promise.all(
      worst.map(async ({ repo, tag, digest, counted }) => {
        const { path } = await toRepoRef(db, repo)
        return { repoUid: repo.uid, path, tag, digest, vulnerabilities: counted.counts! }
      }),
    ),
    sources: sourcesOf(examined),
  }
}

/** Most images in one step. The time is checked before each image. */
const perStep = 50

/** Counts the vulnerabilities of stored images, the newest repositories first, until the time is over. */
async function examine(call: Call, images: readonly TaggedImage[]): Promise<{ examined: Examined[]; isLate: boolean }> {
  const knowledge = createCounts(call.app)
  const until = performance.now() + overviewMs
  const isLate = () => performance.now() > until
  const examined: Examined[] = []
  for (const some of Map.groupBy(images, ({ repo }) => repo.uid).values()) {
    for (const step of chunks(some, perStep)) {
      call.signal.throwIfAborted()
      if (isLate()) return { examined, isLate: true }
      const { repo } = step[0]!
      const digests = step.map(({ digest }) => digest)
      // A tag of an imported history can have a digest that was never stored.
      const stored = new Set((await storedImages(call.app.db, repo.id, digests)).map(({ digest }) => digest))
      const present = digests.filter((digest) => stored.has(digest))
      const counted = await countVulnerabilities(call, knowledge, repo, present, isLate)
      for (const image of step) {
        const found = counted.get(image.digest)
        if (found) examined.push({ ...image, counted: found })
      }
      if (present.some((digest) => !counted.has(digest))) return { examined, isLate: true }
    }
  }
  return { examined, isLate: false }
}

function countImages(examined: readonly Examined[]) {
  const images: SeverityCounts = { critical: 0, high: 0, medium: 0, low: 0, unknown: 0 }
  let [clean, partial, notScanned] = [0, 0, 0]
  for (const { counted } of examined) {
    const { counts, coverage } = counted
    if (!counts) {
      notScanned++
      continue
    }
    const isComplete = coverage.state === 'COMPARED'
    const worst = severityNames.find((name) => counts[name] > 0)
    if (worst) images[worst]++
    else if (isComplete) clean++
    if (!isComplete) partial++
  }
  return { images, clean, partial, notScanned }
}

function compareCounts(one: SeverityCounts, other: SeverityCounts): number {
  const name = severityNames.find((each) => one[each] !== other[each])
  return name ? one[name] - other[name] : 0
}

function reasonsOf(examined: readonly Examined[]): ImageOverview['reasons'] {
  const images = new Map<string, number>()
  for (const { counted } of examined) {
    for (const text of new Set(counted.gaps.map(gapText))) images.set(text, (images.get(text) ?? 0) + 1)
  }
  const all = [...images].map(([text, count]) => ({ text, images: count }))
  return all.sort((a, b) => b.images - a.images || (a.text < b.text ? -1 : 1)).slice(0, mostListed)
}

const outdated: ReadonlySet<string> = new Set(['SOURCE_FAILED', 'SOURCE_STALE'])

function sourcesOf(examined: readonly Examined[]): ImageOverview['sources'] {
  const sources = new Map<string, ImageOverview['sources'][number]>()
  for (const { counted } of examined) {
    for (const { name, fetchTime } of counted.reads) {
      if (!sources.has(name)) sources.set(name, { name, fetchTime, problem: '' })
    }
    for (const { reason, subject, message } of counted.gaps) {
      const source = sources.get(subject)
      if (source && outdated.has(reason)) source.problem = message
    }
  }
  return [...sources.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}
