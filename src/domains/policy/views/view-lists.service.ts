// Lists of the tags that resolve in a snapshot view or a cooldown view, so that clients only see tags that they can pull.

import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { type Question, resolveTag } from './resolve.service.ts'
import { createReadBudget, timePlus } from './views.model.ts'
import * as store from './views.store.ts'

/** Most names that are checked for one response, and most of them that are resolved one by one. */
const mostNames = 1000
const mostResolved = 200
/** Most tags in one query. SQLite limits the parts of a compound statement. */
const atOnce = 200

/** Page of names. The list continues after the name `next`, which need not be in `names`. */
export type NamePage = { names: string[]; next: string | undefined }

/** Questions about the tags of a list, all as of one time. If `passes` is set, the resolved digest must pass this check too. */
export type Listing = {
  until: string
  of(tag: string): Question
  passes?: ((tag: string, digest: string, latest: string) => Promise<boolean>) | undefined
  /** True for tags of signatures and other referrers. In any view they resolve as of now. */
  isAboutDigest?(tag: string): boolean
  standsNow?(tag: string): Promise<boolean>
}

type Repo = store.LedgerRepo

/** Names of tags after `last` that resolve, in byte order. At most `most`, and possibly fewer. */
export async function tagNamesAs(
  reader: Reader,
  repo: Repo,
  listing: Listing,
  wanted: { last: string; most: number; among?: readonly string[] | undefined },
): Promise<NamePage> {
  const most = Math.min(wanted.most, mostNames)
  const rows = await store.namesUntil(reader, repo, { ...wanted, until: listing.until, most: most + 1 })
  const page = rows.slice(0, most)
  const there = page.filter(({ tag, time }) => time !== '' || listing.isAboutDigest?.(tag))
  const { names, stopped } = await resolving(reader, repo, listing, there)
  return { names, next: stopped ?? (rows.length > most ? page.at(-1)!.tag : undefined) }
}

async function resolving(
  reader: Reader,
  repo: Repo,
  listing: Listing,
  rows: readonly store.NamedRow[],
): Promise<{ names: string[]; stopped: string | undefined }> {
  const old = await olderOf(reader, repo, listing, rows)
  const names: string[] = []
  const looks = createReadBudget()
  let resolved = 0
  let last = ''
  for (const row of rows) {
    if (listing.isAboutDigest?.(row.tag)) {
      if (resolved++ === mostResolved) return { names, stopped: last }
      const stands = await listing.standsNow?.(row.tag)
      if (stands) names.push(row.tag)
      if (stands || row.time === '') {
        last = row.tag
        continue
      }
    }
    const question = listing.of(row.tag)
    const { age, accepted = [] } = question
    const isSure = row.here && isOldEnough(row, question) && !listing.passes
    if (isSure) names.push(row.tag)
    else if (!age || age.countFrom === 'repo' || accepted.length > 0 || old.has(row.tag)) {
      if (resolved++ === mostResolved) return { names, stopped: last }
      const { chosen, ...other } = await resolveTag(reader, repo, row.tag, { ...question, looks })
      // The next page begins with this name and has a new read budget.
      if (looks.left <= 0 && last !== '') return { names, stopped: last }
      const latest = 'latest' in other ? other.latest.digest : ''
      if (chosen && ((await listing.passes?.(row.tag, chosen.digest, latest)) ?? true)) names.push(row.tag)
    }
    last = row.tag
  }
  return { names, stopped: undefined }
}

function isOldEnough({ since }: store.NamedRow, { age, until }: Question): boolean {
  return !age || since <= timePlus(until, -age.ms)
}

/** Names of tags that had a row before the required age. Only these tags can resolve to an older digest. */
async function olderOf(reader: Reader, repo: Repo, listing: Listing, rows: readonly store.NamedRow[]) {
  const byCut = Map.groupBy(rows, ({ tag }) => {
    const { age, until } = listing.of(tag)
    return age?.countFrom === 'tag' ? timePlus(until, -age.ms) : ''
  })
  const old = new Set<string>()
  for (const [cut, some] of byCut) {
    if (cut === '') continue
    const names = some.map(({ tag }) => tag)
    for (const part of chunks(names, atOnce)) {
      for (const name of await store.tagsExistingAt(reader, repo, part, cut)) old.add(name)
    }
  }
  return old
}
