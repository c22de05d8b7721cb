// Counts the vulnerabilities of images by severity, with the coverage of the counts.
import type { App, Call } from '#app.ts'
import { contentsOf } from '#domains/registry/images/image-contents.service.ts'
import type { Gap } from '#domains/scanning/image-findings/reports.model.ts'
import { severityLevels } from '#domains/scanning/records/records.model.ts'
import type { SourceRead } from '#domains/scanning/records/records.store.ts'
import { gapsOfImage, isUncertain } from '#domains/scanning/reports/image-gaps.service.ts'
import {
  createKnowledge,
  type ImageKnowledge,
  type Knowledge,
  truncated,
  withAcceptedIn,
} from '#domains/scanning/reports/image-knowledge.service.ts'
import { severitiesAt } from '#domains/scanning/reports/report.service.ts'
import { type ResultCoverage, resultCoverage } from '#domains/scanning/reports/result-coverage.model.ts'
import { rootOf } from '#lib/uid.ts'
import type { SeverityCounts } from './summaries.model.ts'

type Repo = { id: number; uid: string }

/** `counts` is undefined if the packages of the image were not compared. `reads` has the data sources that cover it. */
export type CountedImage = {
  counts: SeverityCounts | undefined
  coverage: ResultCoverage
  gaps: readonly Gap[]
  reads: readonly SourceRead[]
}

/** Marks images that are left out, since all images of the request together have too many findings. */
class TooManyFindings extends Error {}

/** Cache of scan results for one request. */
export const createCounts = (app: App): Knowledge => createKnowledge(app, () => new TooManyFindings())

/** Counts of images of one repository, by digest. Leaves out the images after the one at which the time is over. */
export async function countVulnerabilities(
  call: Call,
  knowledge: Knowledge,
  repo: Repo,
  digests: readonly string[],
  isLate: () => boolean = () => false,
): Promise<Map<string, CountedImage>> {
  const contents = await contentsOf(call.app.db, repo.id, digests)
  const spans = new Map(contents.map((one) => [one.digest, { ...one, fromTime: '', untilTime: '' }]))
  await orTooMany(knowledge.preload([...spans.values()], [rootOf(repo.uid)]))
  const counted = new Map<string, CountedImage>()
  for (const digest of digests) {
    call.signal.throwIfAborted()
    if (isLate()) break
    const span = spans.get(digest)
    const known = span?.state === 'known' ? await orTooMany(knowledge.of(span, [rootOf(repo.uid)])) : undefined
    counted.set(digest, known === tooMany ? leftOut : await countOf(call, { repo, digest, known }))
  }
  return counted
}

const tooMany = Symbol('too many')
const leftOut = uncounted([truncated])

function uncounted(gaps: readonly Gap[]): CountedImage {
  return { counts: undefined, coverage: resultCoverage(gaps, 0), gaps, reads: [] }
}

async function orTooMany<T>(reading: Promise<T>): Promise<T | typeof tooMany> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof TooManyFindings) return tooMany
    throw error
  }
}

type Image = { repo: Repo; digest: string; known: ImageKnowledge | undefined }

async function countOf(call: Call, { repo, digest, known }: Image): Promise<CountedImage> {
  if (!known) return uncounted(await gapsOfImage(call, repo, digest))
  const accepted = await withAcceptedIn(call.app.db, known, [{ repoUid: repo.uid, digest }])
  const levels = [...severitiesAt(accepted, call.now).values()]
  const of = (...wanted: readonly number[]) => levels.filter((level) => wanted.includes(level)).length
  const { critical, high, medium, low, negligible } = severityLevels
  const [critical_, high_, medium_, low_] = [of(critical), of(high), of(medium), of(low, negligible)]
  const counts = { critical: critical_, high: high_, medium: medium_, low: low_, unknown: 0 }
  counts.unknown = levels.length - critical_ - high_ - medium_ - low_
  const hasUncertain = accepted.found.some((one) => isUncertain(one, call.now))
  const gaps = known.gapsAt(call.now)
  const all = hasUncertain ? await gapsOfImage(call, repo, digest) : gaps
  return { counts, coverage: resultCoverage(all, counts.unknown), gaps: all, reads: known.readsAt(call.now) }
}
