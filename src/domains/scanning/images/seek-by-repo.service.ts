// Searches images in the order of their repositories. Unlike the search by package list, it reads all images in the scopes.
import { setImmediate } from 'node:timers/promises'
import { type ImageWithList, imagesOfRepo, nextRepoWithImages } from '#domains/registry/images/image-lists.store.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { addImage, findHits, type HitsAt, type Seeking, type Sought } from './found-images.service.ts'
import * as store from './images.store.ts'
import { listKeyText } from './images.store.ts'

/** The last image that was searched. An empty uid means the start. */
export type RepoPosition = { repo: number; repoUid: string; digest: string }

const imagesAtOnce = 500

/**
 * Searches until the page is full or the time limit is reached. Returns the position at which the page ends, or undefined after
 * the last image.
 */
export async function searchRepos<Hit>(
  seeking: Seeking<Hit>,
  begin: RepoPosition,
  sought: Sought<Hit>,
  desc: boolean,
): Promise<RepoPosition | undefined> {
  const hitsAt = hitsByList(seeking, sought)
  let at = begin
  for (const scope of ordered(seeking.scopes, desc)) {
    if (at.repoUid !== '' && isPast(scope, at.repoUid, desc)) continue
    for (;;) {
      seeking.call.signal.throwIfAborted()
      const some = await nextImages(seeking, scope, at, desc)
      const matching = await hitsAt(some)
      for (const one of some) {
        const { repo, repoUid, digest } = one
        at = { repo, repoUid, digest }
        const hits = matching.get(keyOf(one))
        if (hits) await addImage(seeking, one, one.list.distribution.id, hits)
        if (seeking.left === 0) return at
      }
      if (some.length === 0) break
      if (performance.now() > seeking.until) return at
      await setImmediate()
    }
  }
  return undefined
}

/** The scopes in order, without those that are part of another one. */
function ordered(scopes: readonly string[], desc: boolean): string[] {
  const sorted = [...new Set(scopes)]
    .filter((scope) => !scopes.some((other) => other !== scope && isAtOrBelow(scope, other)))
    .sort()
  return desc ? sorted.reverse() : sorted
}

/** True if all repositories of the scope come before the given one. */
function isPast(scope: string, repoUid: string, desc: boolean): boolean {
  return !isAtOrBelow(repoUid, scope) && (desc ? scope > repoUid : scope < repoUid)
}

/** The next images of a scope after the position: the rest of its repository, or else images of the next repository. */
async function nextImages(
  { call: { app } }: Seeking<unknown>,
  scope: string,
  at: RepoPosition,
  desc: boolean,
): Promise<ImageWithList[]> {
  const isWithin = at.repoUid !== '' && isAtOrBelow(at.repoUid, scope)
  let after = isWithin ? at.repoUid : undefined
  let images = isWithin ? await imagesOfRepo(app.db, at, desc, imagesAtOnce) : []
  while (images.length === 0) {
    const next = await nextRepoWithImages(app.db, scope, { after, desc })
    if (!next) return []
    // All images of a repository can have been deleted since they were read.
    images = await imagesOfRepo(app.db, { repo: next.repo, digest: '' }, desc, imagesAtOnce)
    after = next.repoUid
  }
  return images
}

const keyOf = ({ list }: ImageWithList): string => listKeyText(list)

/** Function that returns the matches of images by package list. Each package list is read once. */
function hitsByList<Hit>({ call: { app }, scopes }: Seeking<Hit>, sought: Sought<Hit>) {
  const known = new Map<string, HitsAt<Hit> | undefined>()
  return async (images: readonly ImageWithList[]): Promise<ReadonlyMap<string, HitsAt<Hit> | undefined>> => {
    const missing = images.filter((one) => !known.has(keyOf(one)))
    for (const list of await store.listsHashed(app.db, [...new Set(missing.map(({ list }) => list.hash))])) {
      const key = listKeyText(list.key)
      if (!known.has(key)) known.set(key, await findHits(list, scopes, sought))
    }
    for (const one of missing) if (!known.has(keyOf(one))) known.set(keyOf(one), undefined)
    return known
  }
}
