// Present coverage gaps of one image. A gap is content that was not read, that was not compared, or that no data source covers.
import type { App, Work } from '#app.ts'
import { packageUrl } from '#contents/package-url.ts'
import { type ContentsRecord, contentsOf, isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { rootOf } from '#lib/uid.ts'
import { findingStates } from '../findings/findings.model.ts'
import { countedAt, isOwnFullAt, type Known } from '../image-findings/image-findings.model.ts'
import { findKnownNow } from '../image-findings/image-findings.store.ts'
import type { Gap } from '../image-findings/reports.model.ts'
import type { StoredList } from '../lists/lists.model.ts'
import { ecosystemsOfList, findList } from '../lists/lists.store.ts'
import { listReads } from '../records/records.store.ts'
import { withAccepted } from '../risks/accepted.service.ts'
import { coverageOf, withDistribution } from './coverage.service.ts'
import { overLimit, ownLimit, truncated, unread } from './image-knowledge.service.ts'

type Repo = { id: number; uid: string }

/** Limit on the findings that are read to determine the gaps of an image. */
const mostFindings = 5000

/** Coverage gaps of an image. Another manifest has one gap, because it is never scanned. */
export async function gapsOfImage({ app, cause }: Work, repo: Repo, digest: string): Promise<Gap[]> {
  const { db } = app
  const [contents] = await contentsOf(db, repo.id, [digest])
  if (contents?.state !== 'known') return [await unreadGap(app, repo, digest, contents)]
  const compared = await readCompared(app, repo, digest, { contents, most: mostFindings + 1 })
  return Array.isArray(compared) ? compared : gapsOfCompared(app, compared, cause.now)
}

/**
 * Reads at most `most` findings of an image. If the packages of the image were not compared, returns the coverage gaps instead.
 */
export async function readCompared(
  { db }: App,
  repo: Repo,
  digest: string,
  { contents, most }: Pick<Compared, 'contents' | 'most'>,
): Promise<Compared | Gap[]> {
  const { packages, distribution, gaps } = contents
  if (packages === '') return [noPackages, ...gaps.map(unread)]
  const list = await findList(db, { hash: packages, distribution })
  if (!list || list.matchTime === '') return [notCompared]
  const all = await findKnownNow(db, list.listNo, [rootOf(repo.uid)], most)
  const known = await withAccepted(db, all, [{ repoUid: repo.uid, digest }], distribution.id)
  return { contents, list, known, most }
}

/** Coverage gap of an image with unknown contents. */
export async function unreadGap(
  { db }: App,
  repo: Repo,
  digest: string,
  contents: ContentsRecord | undefined,
): Promise<Gap> {
  if (contents) return gapOfUnread(contents)
  const isImage = await isKnownImage(db, repo.id, digest)
  const message = isImage ? 'the image has not been read yet' : 'manifests of this type are not scanned'
  return { reason: 'CONTENTS_UNREAD', subject: '', message }
}

export const gapOfUnread = ({ message }: ContentsRecord): Gap => ({
  ...{
    reason: 'CONTENTS_UNREAD',
    subject: '',
    message: message || 'no package database or SBOM was found in the image',
  },
})

/**
 * Gap of an image that was read and has no packages. An image with an empty SBOM looks the same, so having no packages proves
 * nothing.
 */
const noPackages: Gap = { reason: 'CONTENTS_UNREAD', subject: '', message: 'no packages were found in the image' }

const notCompared: Gap = {
  reason: 'NOT_COMPARED',
  subject: '',
  message: 'the packages have not been compared with advisories yet',
}

export type Compared = {
  contents: ContentsRecord
  list: StoredList
  /** Findings of the image, at most `most`. */
  known: readonly Known[]
  most: number
}

/** Coverage gaps of an image whose packages were compared. */
export async function gapsOfCompared(
  { db, config }: App,
  { contents, list, known, most }: Compared,
  now: string,
): Promise<Gap[]> {
  const ecosystems = await ecosystemsOfList(db, list)
  const coverage = coverageOf(ecosystems, await listReads(db, ecosystems), config.vulnerabilityMaxAgeDays)
  return [
    ...coverage.gapsAt(now).map((gap) => withDistribution(gap, contents.distribution)),
    ...contents.gaps.map(unread),
    ...(list.isOver ? [overLimit] : []),
    ...(isOwnFullAt(known, now) ? [ownLimit] : []),
    ...(known.length < most ? [] : [truncated]),
    ...known.filter((one) => isUncertain(one, now)).map((one) => versionGap(one, contents.distribution.id)),
  ]
}

/** True if the finding applies and the version of its package cannot be compared. */
export const isUncertain = (one: Known, now: string): boolean =>
  one.state === findingStates.unknown && countedAt(one, now).length > 0

export const purlOf = ({ component }: Known, distribution: string): string => packageUrl(component, distribution)

function versionGap(one: Known, distribution: string): Gap {
  const { record, affected } = one
  return {
    reason: 'VERSION',
    subject: purlOf(one, distribution),
    message: `the version cannot be compared with the versions of ${affected.name} in ${record.id}`,
  }
}
