// Summaries of groups, repositories and images for the rows of lists.
import { ask, Refusal } from './api.ts'
import type { ImageSummary, ScopeSummary } from './types.ts'

/** Most images, and most groups and repositories, of one request. */
const mostImages = 50
const mostScopes = 100

/** Summaries by uid. Empty if the user lacks the permission; then the list is shown without them. */
export async function readScopeSummaries(
  uids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ScopeSummary>> {
  if (uids.length === 0) return new Map()
  const read = async (some: readonly string[]) => {
    const body = { uids: some }
    return ask<{ scopes: ScopeSummary[] }>('POST', '/registry/v2/scopeSummaries:get', { body, signal })
  }
  const pages = await orNone(Promise.all(partsOf(uids, mostScopes).map(read)))
  return new Map(pages?.flatMap(({ scopes }) => scopes).map((one) => [one.uid, one]))
}

/** Summaries of images of a repository by digest. Empty if the user lacks the permission. */
export async function readImageSummaries(
  repo: string,
  digests: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ImageSummary>> {
  const wanted = [...new Set(digests.filter((one) => one !== ''))]
  const read = async (some: readonly string[]) => {
    const query = { digests: some.join(',') }
    return ask<{ images: ImageSummary[] }>('GET', `/registry/v2/repos/${repo}/imageSummaries`, { query, signal })
  }
  const pages = await orNone(Promise.all(partsOf(wanted, mostImages).map(read)))
  return new Map(pages?.flatMap(({ images }) => images).map((one) => [one.digest, one]))
}

async function orNone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Refusal && error.status === 403) return undefined
    throw error
  }
}

function partsOf(all: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))
}
