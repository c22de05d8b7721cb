// Summaries of images of one repository, from stored data.
import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { findPlatforms } from '#domains/registry/images/image-details.service.ts'
import { createSizeBudget, createSizes } from '#domains/registry/images/images.service.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { tagsAbout } from '#domains/registry/tags/tags.model.ts'
import { namesWith, tagsNamed } from '#domains/registry/tags/tags.store.ts'
import type { Knowledge } from '#domains/scanning/reports/image-knowledge.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid } from '#lib/errors.ts'
import type { Walk } from '#lib/scheduling/walk.ts'
import { type CountedImage, countVulnerabilities, createCounts } from './counted-vulnerabilities.service.ts'
import {
  isSignature,
  maxManifestBytes,
  mostImages,
  mostPlatforms,
  mostSignatures,
  mostTags,
  pullDays,
  type StoredImage,
  signatureTypes,
} from './summaries.model.ts'
import * as store from './summaries.store.ts'

export type ImageSummary = StoredImage & {
  platforms: readonly string[]
  /** Bytes that a pull transfers. Undefined if they are not known. */
  bytes: number | undefined
  /** Undefined for a caller without permission to list vulnerability reports. */
  vulnerabilities: CountedImage | undefined
  signatures: number
  /** Undefined for a caller without permission to list manifests. */
  recentPulls: number | undefined
  tags: readonly string[]
}

type Repo = { id: number; uid: string }

/** Throws NOT_FOUND if the repository does not exist, and INVALID_ARGUMENT for too many or invalid digests. */
export async function getImageSummaries(
  call: Call,
  repoUid: string,
  digests: readonly string[],
): Promise<ImageSummary[]> {
  if (digests.length === 0 || digests.length > mostImages) {
    throw invalid({ field: 'digests', description: `must have 1 to ${mostImages} digests` })
  }
  const wrong = digests.findIndex((one) => !isDigest(one))
  if (wrong >= 0) throw invalid({ field: `digests[${wrong}]`, description: 'is not a digest' })
  const repo = found(await findRepoRow(call.app.db, { uid: repoUid }), repoType, repoUid)
  return summarize(call, createShared(call), repo, [...new Set(digests)])
}

const vulnerabilityReports = [capabilityNumber('vuln_reports.list')]
const manifests = [capabilityNumber('manifest.list')]
const dayMs = 86_400_000

/** State that all summaries of one request share. */
export type Shared = { knowledge: Knowledge; sizeBudget: Walk }

export const createShared = (call: Call): Shared => ({
  knowledge: createCounts(call.app),
  sizeBudget: createSizeBudget(call),
})

/** Summaries in the order of the digests. Digests that the repository does not have are left out. */
export async function summarize(
  call: Call,
  { knowledge, sizeBudget }: Shared,
  repo: Repo,
  digests: readonly string[],
): Promise<ImageSummary[]> {
  const { db } = call.app
  const { rights } = call.caller
  const stored = new Map((await store.storedImages(db, repo.id, digests)).map((one) => [one.digest, one]))
  const present = digests.flatMap((digest) => stored.get(digest) ?? [])
  const names = present.map(({ digest }) => digest)
  const small = present.filter(({ size }) => size <= maxManifestBytes).map(({ digest }) => digest)
  const platforms = await findPlatforms(call, repo, small)
  const sizes = await createSizes(call, repo, names, sizeBudget)
  const counted = rights.holds(repo.uid, vulnerabilityReports)
    ? await countVulnerabilities(call, knowledge, repo, names)
    : undefined
  const day = new Date(Date.parse(call.now) - pullDays * dayMs).toISOString().slice(0, 10)
  const pulls = rights.holds(repo.uid, manifests)
    ? await store.pullsSince(db, { repo: repo.id, digests: names, day })
    : undefined
  const summaries: ImageSummary[] = []
  for (const image of present) {
    call.signal.throwIfAborted()
    const { digest } = image
    const bytes = await sizes.of(digest)
    summaries.push({
      ...image,
      platforms: (platforms.get(digest) ?? []).slice(0, mostPlatforms),
      bytes: bytes > 0 ? bytes : undefined,
      vulnerabilities: counted?.get(digest),
      signatures: await countSignatures(call, repo, digest),
      recentPulls: pulls && (pulls.get(digest) ?? 0),
      tags: await namesWith(db, repo, digest, mostTags),
    })
  }
  return summaries
}

/** Signatures that refer to the image, and the tag under which earlier versions of cosign store signatures. */
async function countSignatures({ app }: Call, repo: Repo, digest: string): Promise<number> {
  const about = { repo: repo.id, subject: digest, types: signatureTypes }
  const referrers = await store.referrersOfTypes(app.db, about, mostSignatures)
  const tags = tagsAbout(digest).filter((tag) => tag.endsWith('.sig'))
  const tagged = await tagsNamed(app.db, repo.id, tags)
  return Math.min(referrers.filter(isSignature).length + tagged.length, mostSignatures)
}
