// What images contain as it was known over time, and wherever a digest is.
import type { Reader as DbReader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { ContentsSpan } from './image-contents.model.ts'
import { contentsOf } from './image-contents.service.ts'
import * as store from './image-contents.store.ts'

/** How many images one statement asks about. */
const atOnce = 500

/**
 * What is known of images of a repo over time, by their digests and the newest first: when an image is read again, reports
 * of past days stay those of what was known then.
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

/** How much of the past is looked at. */
const mostPast = 5000

/** How many repos with an image of one digest are looked at. */
const mostRepos = { page: 500, all: 20_000 }

/** The repos, as many as `most`, that are seen and of which it is known what the image of this digest contains. */
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

/** Whether an image has, or had while its repo is there, the packages of this hash. */
export const isInUse = (reader: DbReader, { hash: of }: { hash: string }): Promise<boolean> => store.isInUse(reader, of)

/** The organisations that have, or had, an image with the packages of this hash; of very many images some of them. */
export const organizationsWith = (reader: DbReader, { hash: of }: { hash: string }): Promise<string[]> =>
  store.organizationsWith(reader, of, mostUsers)
const mostUsers = 1000
