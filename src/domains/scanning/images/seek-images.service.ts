// Goes through the images that the caller may list and that have something, list by list and a page at a time.
import type { Call } from '#app.ts'
import { groupExists } from '#domains/iam/groups/groups.service.ts'
import {
  imagesOfList,
  type ListedImage,
  listsBelow,
  unknownBelow,
} from '#domains/registry/images/image-lists.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { tagsOn } from '#domains/registry/tags/tag-history.service.ts'
import { invalid, notFound, permissionDenied } from '#lib/errors.ts'
import { type Page, toListed } from '#lib/lists/paging.ts'
import { isAtOrBelow, isUid, rootOf, top } from '#lib/uid.ts'
import { type ImagePosition, mostComponents, mostScoped, mostTags, mostUnknown, pageMs } from './images.model.ts'
import * as store from './images.store.ts'

/** What is looked for. A hit with a place counts in that organisation only; one without counts everywhere. */
export type Sought<Hit extends { place: string }> = {
  /** The packages that may be it; fewer than `most` when these are all. */
  components(most: number): Promise<number[]>
  /** What there is of it in some lists. */
  hits(lists: readonly number[]): Promise<readonly (Hit & { listNo: number })[]>
}

export type FoundImage<Hit> = {
  image: ListedImage
  distribution: string
  hits: readonly Hit[]
  tags: string[]
  moreTags: boolean
}

export type FoundPage<Hit> = { images: FoundImage<Hit>[]; next: string; unknown: number }

/** Where to look: what is named, or wherever the caller may. Permission comes before existence. */
export async function placesFor(call: Call, scope: string): Promise<readonly string[]> {
  if (scope === '') return call.reach
  if (!isUid(scope)) throw invalid({ field: 'scope_uid', description: 'is not a uid' })
  if (!call.reach.some((place) => isAtOrBelow(scope, place))) throw permissionDenied()
  const { db } = call.app
  if (!(await groupExists(db, scope)) && !(await findRepoByUid(db, scope))) {
    throw notFound('iam.pinfold.dev/Group', scope)
  }
  return [scope]
}

/** A page of images; shorter than asked for when it takes long to find more. */
export async function seekImages<Hit extends { place: string }>(
  call: Call,
  page: Page,
  places: readonly string[],
  sought: Sought<Hit>,
): Promise<FoundPage<Hit>> {
  const unknown = page.after === undefined ? await countUnknown(call, places) : 0
  if (places.length === 0) return { images: [], next: '', unknown }
  const candidates = await candidatesFor(call, places, sought)
  const seeking: Seeking<Hit> = { call, places, images: [], left: page.size, until: performance.now() + pageMs }
  let at = positionOf(page)
  for (let isFirst = true; ; isFirst = false) {
    call.signal.throwIfAborted()
    const lists = await candidates(at.list)
    if (lists.length === 0) return { images: seeking.images, next: '', unknown }
    // A page has at least looked at something, or it would never end.
    if (!isFirst && performance.now() > seeking.until) break
    at = await takeFrom(seeking, lists, at, sought)
    if (seeking.left === 0) break
  }
  const last: ImagePosition = { list: String(at.list), uid: `${at.image.repo} ${at.image.digest}` }
  // Where the page ended, which need not be an image of it.
  return { images: seeking.images, next: toListed(call, { ...page, size: 1 }, [last, last], 0).next, unknown }
}

/** From this list on, and in it behind this image. */
type Position = { list: number; image: { repo: number; digest: string } }

const beginning = { repo: 0, digest: '' }

function positionOf({ after }: Page): Position {
  if (!after) return { list: 0, image: beginning }
  const [repo = '0', digest = ''] = after.uid.split(' ')
  return { list: Number(after.value), image: { repo: Number(repo), digest } }
}

const listsAtOnce = 50
const imagesAtOnce = 500

/** Lists that may have it, from a number on, in order. */
type Candidates = (from: number) => Promise<number[]>

async function candidatesFor(
  { app: { db } }: Call,
  places: readonly string[],
  sought: Sought<{ place: string }>,
): Promise<Candidates> {
  const scoped = await listsIn(db, places)
  if (scoped) return async (from) => scoped.filter((one) => one >= from).slice(0, listsAtOnce)
  const components = await sought.components(mostComponents)
  if (components.length < mostComponents) return (from) => store.listsWithAny(db, components, from, listsAtOnce)
  return (from) => store.listsFrom(db, from, listsAtOnce)
}

/** The lists of images in the places, in order; undefined when there are many. */
async function listsIn(db: Call['app']['db'], places: readonly string[]): Promise<number[] | undefined> {
  if (places.includes(top)) return undefined
  const keys = new Set<string>()
  let left = mostScoped
  for (const place of places) {
    const some = await listsBelow(db, place, left + 1)
    left -= some.length
    if (left < 0) return undefined
    for (const { hash } of some) keys.add(hash)
  }
  return (await store.listsHashed(db, [...keys])).map(({ listNo }) => listNo).sort((one, other) => one - other)
}

type Seeking<Hit> = {
  call: Call
  places: readonly string[]
  images: FoundImage<Hit>[]
  left: number
  until: number
}

/** Adds the images of some lists until there is no room or no time left; answers with where it has ended. */
async function takeFrom<Hit extends { place: string }>(
  seeking: Seeking<Hit>,
  lists: readonly number[],
  begin: Position,
  sought: Sought<Hit>,
): Promise<Position> {
  const { db } = seeking.call.app
  const hits = Map.groupBy(await sought.hits(lists), ({ listNo }) => listNo)
  const named = new Map((await store.listsOf(db, [...hits.keys()])).map((one) => [one.listNo, one]))
  for (const listNo of lists) {
    const key = named.get(listNo)?.key
    let image = listNo === begin.list ? begin.image : beginning
    while (key) {
      const some = await imagesOfList(db, key, image, imagesAtOnce)
      for (const one of some) {
        image = one
        await take(seeking, one, key.distribution.id, hits.get(listNo)!)
        if (seeking.left === 0) return { list: listNo, image }
      }
      if (some.length < imagesAtOnce) break
      if (performance.now() > seeking.until) return { list: listNo, image }
    }
  }
  return { list: lists.at(-1)! + 1, image: beginning }
}

async function take<Hit extends { place: string }>(
  seeking: Seeking<Hit>,
  image: ListedImage,
  distribution: string,
  hits: readonly Hit[],
): Promise<void> {
  if (!seeking.places.some((place) => isAtOrBelow(image.repoUid, place))) return
  const own = hits.filter(({ place }) => place === '' || place === rootOf(image.repoUid))
  if (own.length === 0) return
  const names = await tagsOn(seeking.call.app.db, { id: image.repo, uid: image.repoUid }, image.digest, mostTags + 1)
  const tags = names.slice(0, mostTags).sort()
  seeking.images.push({ image, distribution, hits: own, tags, moreTags: names.length > mostTags })
  seeking.left--
}

const unmatchedAtOnce = 100

/** Images of which nobody knows what is in them, or what is known of that, as far as they are counted. */
async function countUnknown({ app: { db } }: Call, places: readonly string[]): Promise<number> {
  const found = new Set<string>()
  const note = ({ repo, digest }: ListedImage) => found.add(`${repo} ${digest}`)
  for (const place of places) {
    for (const one of await unknownBelow(db, place, mostUnknown)) note(one)
    if (found.size >= mostUnknown) return mostUnknown
  }
  for (const { key } of await store.unmatchedLists(db, unmatchedAtOnce)) {
    const some = await imagesOfList(db, key, beginning, imagesAtOnce)
    for (const one of some) if (places.some((place) => isAtOrBelow(one.repoUid, place))) note(one)
  }
  return Math.min(found.size, mostUnknown)
}
