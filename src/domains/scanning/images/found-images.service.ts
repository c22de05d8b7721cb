// Parts of a search for images: matches in a package list, and the images of a page.
import type { Call } from '#app.ts'
import type { ListedImage } from '#domains/registry/images/image-lists.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { isAtOrBelow, rootOf, top } from '#lib/uid.ts'
import { mostHits, mostTags } from './images.model.ts'
import type { NamedList } from './images.store.ts'

/** A kind of search, for example for a vulnerability. */
export type Sought<Hit> = {
  /** True if the result is the same for all organizations. Otherwise an organization's own advisories can add matches. */
  isForAll: boolean
  /**
   * Packages that may match for one of the organizations, or for any organization. If fewer than `most` are returned, these are
   * all.
   */
  components(organizations: readonly string[] | undefined, most: number): Promise<number[]>
  /** At most `most` matches in a list, the most severe first. The matches are shared, or belong to `organization`. */
  hits(list: NamedList, organization: string, most: number): Promise<readonly Hit[]>
}

export type FoundImage<Hit> = {
  image: ListedImage
  distribution: string
  hits: readonly Hit[]
  /** True if the image has more matches than `hits` contains. */
  moreHits: boolean
  tags: string[]
  moreTags: boolean
}

/** A search in progress: the images found so far, and how many more the page takes. */
export type Seeking<Hit> = {
  call: Call
  scopes: readonly string[]
  images: FoundImage<Hit>[]
  left: number
  /** Number of images to skip first. */
  toSkip: number
  until: number
}

const mostOrganizations = 100

/** Organizations of the scopes. Returns undefined if the scopes are all organizations, or too many. */
export function organizationsIn(scopes: readonly string[]): string[] | undefined {
  const organizations = [...new Set(scopes.map(rootOf))]
  return scopes.includes(top) || organizations.length > mostOrganizations ? undefined : organizations
}

/** Matches in a package list for the images of an organization. */
export type HitsAt<Hit> = (organization: string) => Promise<{ hits: readonly Hit[]; more: boolean }>

/** Matches in a package list. Returns undefined if the list has no match for any organization in the scopes. */
export async function findHits<Hit>(
  list: NamedList,
  scopes: readonly string[],
  { hits, isForAll }: Sought<Hit>,
): Promise<HitsAt<Hit> | undefined> {
  const of = (organization: string) => hits(list, organization, mostHits + 1)
  const forAll = await of('')
  const known = new Map<string, readonly Hit[]>()
  const own = async (organization: string) => {
    const there = known.get(organization) ?? (isForAll ? [] : await of(organization))
    known.set(organization, there)
    return there
  }
  const organizations = isForAll ? [] : organizationsIn(scopes)
  let isThere = forAll.length > 0 || organizations === undefined
  for (const one of organizations ?? []) isThere ||= (await own(one)).length > 0
  if (!isThere) return undefined
  return async (organization) => {
    const there = await own(organization)
    return {
      hits: [...forAll.slice(0, mostHits), ...there.slice(0, mostHits)],
      more: Math.max(forAll.length, there.length) > mostHits,
    }
  }
}

/** Adds the image to the page if it is in the scopes and has a match. Skips it if the page still has to skip images. */
export async function addImage<Hit>(
  seeking: Seeking<Hit>,
  image: ListedImage,
  distribution: string,
  hitsAt: HitsAt<Hit>,
): Promise<void> {
  if (!seeking.scopes.some((scope) => isAtOrBelow(image.repoUid, scope))) return
  const { hits, more } = await hitsAt(rootOf(image.repoUid))
  if (hits.length === 0) return
  if (seeking.toSkip > 0) {
    seeking.toSkip--
    return
  }
  const names = await namesWith(seeking.call.app.db, { id: image.repo, uid: image.repoUid }, image.digest, mostTags + 1)
  const tags = names.slice(0, mostTags).sort()
  seeking.images.push({ image, distribution, hits, moreHits: more, tags, moreTags: names.length > mostTags })
  seeking.left--
}
