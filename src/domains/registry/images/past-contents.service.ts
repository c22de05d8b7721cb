// Former and present contents of images, and the repositories that have an image of one digest.
import type { Reader as DbReader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { ContentsSpan } from './image-contents.model.ts'
import { contentsOf } from './image-contents.service.ts'
import * as store from './image-contents.store.ts'

/** Most images in one statement. */
const atOnce = 500

/**
 * Contents of images of a repository over time, by digest and the newest first. Reading an image again does not change reports
 * about past days.
 */
export async function contentsOverTime(
  reader: DbReader,
  repo: number,
  digests: readonly string[],
): Promise<Map<string, ContentsSpan[]>> {
  const past: Awaited<ReturnType<typeof store.findPast>> = []
  for (const some of chunks([...new Set(digests)], atOnce)) {
    past.push(...(await store.findPast(reader, repo, some, mostPast)))
  }
  const before = Map.groupBy(past, ({ digest }) => digest)
  const spans = (await contentsOf(reader, repo, digests)).map((now): [string, ContentsSpan[]] => {
    const all = [{ ...now, untilTime: '' }, ...(before.get(now.digest) ?? [])]
    return [now.digest, all.map((one, i) => ({ ...one, fromTime: all[i + 1]?.untilTime ?? '' }))]
  })
  return new Map(spans)
}

/** Most rows of former contents that one call reads. */
const mostPast = 5000

/** Most repositories with an image of one digest that are read: on one page, and in total. */
const mostRepos = { page: 500, all: 20_000 }

/** Repositories in which the contents of this digest are known and that the caller can see. At most `most`. */
export async function contentsEverywhere(
  reader: DbReader,
  digest: string,
  { sees, most }: { sees(repoUid: string, repo: number): boolean; most: number },
): Promise<Awaited<ReturnType<typeof store.findEverywhere>>> {
  const found: Awaited<ReturnType<typeof store.findEverywhere>> = []
  for (let after = 0, looked = 0; looked < mostRepos.all && found.length < most; looked += mostRepos.page) {
    const page = await store.findEverywhere(reader, digest, { after, most: mostRepos.page })
    found.push(...page.filter(({ repoUid, repo }) => sees(repoUid, Number(repo))))
    if (page.length < mostRepos.page) break
    after = page.at(-1)!.repo
  }
  return found.slice(0, most)
}

/** True if an image has the package list of this hash, or had it and its repository still exists. */
export const isInUse = (reader: DbReader, { hash: of }: { hash: string }): Promise<boolean> => store.isInUse(reader, of)

/** Organizations that have, or had, an image with the package list of this hash. Examines only the first images. */
export const organizationsWith = (reader: DbReader, { hash: of }: { hash: string }): Promise<string[]> =>
  store.organizationsWith(reader, of, mostUsers)
const mostUsers = 1000
