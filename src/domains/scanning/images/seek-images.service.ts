// Searches all images that the caller can list for a package or vulnerability. Each page searches some package lists.
import { setImmediate } from 'node:timers/promises'
import type { Call } from '#app.ts'
import {
  hashesInUse,
  imagesOfList,
  type ListedImage,
  type ListName,
  listsBelow,
  unknownBelow,
} from '#domains/registry/images/image-lists.store.ts'
import { type Listed, listedUpTo, type Page } from '#lib/lists/paging.ts'
import { isAtOrBelow, top } from '#lib/uid.ts'
import {
  addImage,
  type FoundImage,
  findHits,
  organizationsIn,
  type Seeking,
  type Sought,
} from './found-images.service.ts'
import { countMs, mostComponents, mostCounted, mostScoped, mostUnknown, pageMs, unknownMs } from './images.model.ts'
import type { NamedList } from './images.store.ts'
import * as store from './images.store.ts'
import { listKeyText } from './images.store.ts'
import { type RepoPosition, searchRepos } from './seek-by-repo.service.ts'

/**
 * Number of images that are not completely scanned. `moreUnknown` is true if not all images were counted, so there may be more.
 */
export type UnknownImages = { unknown: number; moreUnknown: boolean }

/** A page of images. The total is undefined if counting takes too long. Only the first page has the number of unknown images. */
export type FoundPage<Hit> = Listed<FoundImage<Hit>, number | undefined> & UnknownImages

/** Searches one page of images. The page is shorter than requested if the time limit is reached. */
export async function seekImages<Hit>(
  call: Call,
  page: Page,
  { scopes, scoped }: Searched,
  sought: Sought<Hit>,
): Promise<FoundPage<Hit>> {
  const isFirst = page.after === undefined
  const counted = isFirst ? await countUnknown(call, scopes, scoped) : { unknown: 0, moreUnknown: false }
  if (scopes.length === 0) return { items: [], next: '', total: 0, ...counted }
  const candidates = await findCandidates(call, scopes, scoped, sought)
  const { total: known, ...begin } = readPosition(page)
  const seeking = createSeeking<Hit>(call, scopes, page)
  const { field, desc } = page.order
  const end: Position | RepoPosition | undefined =
    field === 'repoUid'
      ? await searchRepos(seeking, readRepoPosition(page), sought, desc)
      : await searchLists(seeking, candidates, begin, sought)
  const { images, toSkip } = seeking
  const seen = page.skip - toSkip + images.length
  const total = isFirst ? (end ? await countImages(seeking, candidates, sought) : seen) : known
  return {
    ...listedUpTo(call, page, { items: images, total, last: end && toPageToken(end, total), toSkip }),
    ...counted,
  }
}

/** The next images for a job that processes all images, without counts. `next` is empty at the end. */
export async function seekSome<Hit>(
  call: Call,
  page: Page,
  { scopes, scoped }: Searched,
  sought: Sought<Hit>,
): Promise<{ images: readonly FoundImage<Hit>[]; next: string }> {
  const seeking = createSeeking<Hit>(call, scopes, page)
  const end = await searchLists(seeking, await findCandidates(call, scopes, scoped, sought), readPosition(page), sought)
  const { images, toSkip } = seeking
  const last = end && toPageToken(end, undefined)
  return { images, next: listedUpTo(call, page, { items: [], total: undefined, last, toSkip }).next }
}

const createSeeking = <Hit>(call: Call, scopes: readonly string[], page: Page): Seeking<Hit> => {
  return { call, scopes, images: [], left: page.size, toSkip: page.skip, until: performance.now() + pageMs }
}

/**
 * Page token for the position at which a page ended. The page need not contain the image at this position. Later pages repeat the
 * total of the first page.
 */
function toPageToken(at: Position | RepoPosition, total: number | undefined): NonNullable<Page['after']> {
  const { value, image } = 'list' in at ? { value: String(at.list), image: at.image } : { value: at.repoUid, image: at }
  return { value, uid: `${image.repo} ${image.digest} ${total ?? ''}` }
}

/**
 * Searches until the page is full or the time limit is reached. Returns the position at which the page ends, or undefined after
 * the last list.
 */
async function searchLists<Hit>(
  seeking: Seeking<Hit>,
  candidates: Candidates,
  begin: Position,
  sought: Sought<Hit>,
): Promise<Position | undefined> {
  let at = begin
  for (let isFirst = true; ; isFirst = false) {
    seeking.call.signal.throwIfAborted()
    const lists = await candidates(at.list)
    if (lists.length === 0) return undefined
    // Each page checks some lists even if its time is over, so that paging always ends.
    if (!isFirst && performance.now() > seeking.until) return at
    at = await addImagesOf(seeking, lists, at, sought)
    if (seeking.left === 0) return at
  }
}

/** Total number of images. Returns undefined if the limit on number or time is exceeded. */
async function countImages<Hit>(
  { call, scopes }: Pick<Seeking<Hit>, 'call' | 'scopes'>,
  candidates: Candidates,
  sought: Sought<Hit>,
): Promise<number | undefined> {
  const room = { left: 1, toSkip: mostCounted, until: performance.now() + countMs }
  const counting: Seeking<Hit> = { call, scopes, images: [], ...room }
  const end = await searchLists(counting, candidates, { list: 0, image: beginning }, sought)
  return end ? undefined : mostCounted - counting.toSkip + counting.images.length
}

/** Position in a search: the first package list to search, and the last image of this list that was searched. */
type Position = { list: number; image: { repo: number; digest: string } }

const beginning = { repo: 0, digest: '' }

function readPosition({ after }: Page): Position & { total: number | undefined } {
  if (!after) return { list: 0, image: beginning, total: undefined }
  const [repo = '0', digest = '', total = ''] = after.uid.split(' ')
  const image = { repo: Number(repo), digest }
  return { list: Number(after.value), image, total: total === '' ? undefined : Number(total) }
}

function readRepoPosition({ after }: Page): RepoPosition {
  if (!after) return { ...beginning, repoUid: '' }
  const [repo = '0', digest = ''] = after.uid.split(' ')
  return { repo: Number(repo), repoUid: after.value, digest }
}

const listsAtOnce = 50
const imagesAtOnce = 500

/** Package lists that may match, in order. `from` is the first number. */
type Candidates = (from: number) => Promise<number[]>

async function findCandidates(
  { app: { db } }: Call,
  scopes: readonly string[],
  scoped: Scoped | undefined,
  sought: Sought<unknown>,
): Promise<Candidates> {
  if (scoped) {
    const numbers = scoped.lists.map(({ listNo }) => listNo).sort((one, other) => one - other)
    return async (from) => numbers.filter((one) => one >= from).slice(0, listsAtOnce)
  }
  const components = await sought.components(organizationsIn(scopes), mostComponents)
  if (components.length < mostComponents) return (from) => store.listsWithAny(db, components, from, listsAtOnce)
  return (from) => store.listsFrom(db, from, listsAtOnce)
}

/** Scopes of a search, and the package lists of their images. `scoped` is undefined if the scopes have too many images. */
export type Searched = { scopes: readonly string[]; scoped: Scoped | undefined }

export async function searchedIn(call: Call, scopes: readonly string[]): Promise<Searched> {
  return { scopes, scoped: await listsIn(call, scopes) }
}

/** Package lists of images in the scopes. `missing` names lists that are not stored yet. */
type Scoped = { lists: readonly NamedList[]; missing: readonly ListName[] }

/** Package lists of images in the scopes. Returns undefined if the scopes have too many images. */
async function listsIn({ app: { db }, signal }: Call, scopes: readonly string[]): Promise<Scoped | undefined> {
  if (scopes.includes(top)) return undefined
  const names = new Map<string, ListName>()
  let left = mostScoped
  for (const scope of scopes) {
    signal.throwIfAborted()
    const some = await listsBelow(db, scope, left + 1)
    left -= some.length
    if (left < 0) return undefined
    for (const one of some) names.set(listKeyText(one), one)
  }
  const hashes = new Set([...names.values()].map(({ hash }) => hash))
  const lists = (await store.listsHashed(db, [...hashes])).filter(({ key }) => names.has(listKeyText(key)))
  for (const { key } of lists) names.delete(listKeyText(key))
  return { lists, missing: [...names.values()] }
}

/**
 * Adds the images of some package lists until the page is full or the time limit is reached. Returns the position at which the
 * page ends.
 */
async function addImagesOf<Hit>(
  seeking: Seeking<Hit>,
  lists: readonly number[],
  begin: Position,
  sought: Sought<Hit>,
): Promise<Position> {
  const { app, signal } = seeking.call
  const named = new Map((await store.listsOf(app.db, lists)).map((one) => [one.listNo, one]))
  for (const [i, listNo] of lists.entries()) {
    signal.throwIfAborted()
    let image = listNo === begin.list ? begin.image : beginning
    if (i > 0 && performance.now() > seeking.until) return { list: listNo, image }
    const list = named.get(listNo)
    const hitsAt = list && (await findHits(list, seeking.scopes, sought))
    while (hitsAt) {
      const some = await imagesOfList(app.db, list.key, image, imagesAtOnce)
      for (const one of some) {
        image = one
        await addImage(seeking, one, list.key.distribution.id, hitsAt)
        if (seeking.left === 0) return { list: listNo, image }
      }
      if (some.length < imagesAtOnce) break
      if (performance.now() > seeking.until) return { list: listNo, image }
    }
    await setImmediate()
  }
  return { list: lists.at(-1)! + 1, image: beginning }
}

/** Limit on the different sets of ecosystems that one request reads. */
const mostSets = 1000

/** Ecosystems of the packages in the scopes. `moreEcosystems` is true if there may be more ecosystems. */
export async function ecosystemsIn(
  { app: { db } }: Call,
  { scopes, scoped }: Searched,
): Promise<{ ecosystems: string[]; moreEcosystems: boolean }> {
  // The set of all lists includes lists of other organizations, whose ecosystems the caller must not see.
  if (!scoped && !scopes.includes(top)) return { ecosystems: [], moreEcosystems: true }
  const stored = scoped?.lists.map(({ ecosystems }) => ecosystems) ?? (await store.storedEcosystems(db, mostSets + 1))
  // Lists of earlier releases have no ecosystems until a background job adds them.
  const sets = [...new Set(stored)].filter((one) => one !== '').slice(0, mostSets)
  const ecosystems = [...new Set(sets.flatMap((one) => JSON.parse(one) as string[]))].sort()
  const isCut = !scoped && stored.length > mostSets
  return { ecosystems, moreEcosystems: isCut || stored.includes('') }
}

const unsureAtOnce = 100

/** Counts images that were not compared, and images with contents that are unknown or partly unknown. Stops at the limits. */
async function countUnknown(
  { app: { db }, signal }: Call,
  scopes: readonly string[],
  scoped: Scoped | undefined,
): Promise<UnknownImages> {
  const until = performance.now() + unknownMs
  const found = new Set<string>()
  const note = ({ repo, digest }: ListedImage) => found.add(`${repo} ${digest}`)
  const isFull = () => found.size >= mostUnknown || performance.now() > until
  for (const scope of scopes) {
    if (isFull()) break
    signal.throwIfAborted()
    for (const one of await unknownBelow(db, scope, mostUnknown)) note(one)
  }
  const noteAll = async (name: ListName): Promise<void> => {
    for (let image: { repo: number; digest: string } | undefined = beginning; image && !isFull(); ) {
      signal.throwIfAborted()
      const some: ListedImage[] = await imagesOfList(db, name, image, imagesAtOnce)
      for (const one of some) if (scopes.some((scope) => isAtOrBelow(one.repoUid, scope))) note(one)
      image = some.length < imagesAtOnce ? undefined : some.at(-1)
      await setImmediate()
    }
  }
  for (const name of scoped ? incompleteLists(scoped) : []) await noteAll(name)
  for (let after: number | undefined = scoped ? undefined : 0; after !== undefined && !isFull(); ) {
    const lists: NamedList[] = await store.incompleteLists(db, after, unsureAtOnce)
    const used = await hashesInUse(
      db,
      lists.map(({ key }) => key.hash),
    )
    for (const { key } of lists) if (used.has(key.hash)) await noteAll(key)
    after = lists.length < unsureAtOnce ? undefined : lists.at(-1)!.listNo
  }
  return { unknown: Math.min(found.size, mostUnknown), moreUnknown: isFull() }
}

const incompleteLists = ({ lists, missing }: Scoped): ListName[] => [
  ...lists.filter(({ matchTime, isOver }) => matchTime === '' || isOver).map(({ key }) => key),
  ...missing,
]
