// End of life of tags. The status of a tag depends on the time and is computed on request. The main package of an image does not
// depend on the time and is stored.
import type { App, Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import { type Listed, toListed } from '#lib/lists/paging.ts'
import type { Walk } from '#lib/scheduling/walk.ts'
import { parentOf, rootOf } from '#lib/uid.ts'
import { findRepo, findRepoRow } from '../repos/repos.store.ts'
import { findSettings } from '../settings/settings.store.ts'
import type { Tag } from '../tags/tags.model.ts'
import { listTags } from '../tags/tags.service.ts'
import type { TagFilter } from '../tags/tags.store.ts'
import { type SupportState, supportStateOf } from './end-of-life.model.ts'
import type { Release } from './lifecycles.model.ts'
import * as store from './lifecycles.store.ts'
import { releasesOf } from './lifecycles.store.ts'
import { mainPackagesOf, readingOf, type StoredMain } from './main-packages.service.ts'

/**
 * A tag and its status. `main` is undefined if the contents of the image are unknown, and `release` if the release line is
 * unknown.
 */
export type EolTag = { tag: Judged; main: StoredMain | undefined; release: Release | undefined; standing: SupportState }

type Judged = Pick<Tag, 'uid' | 'name' | 'digest' | 'deprecated'>

/** A page of tags with their status. It may be short, since one request reads only a limited amount of data. */
export async function listEolTags(call: Call, query: ListQuery<TagFilter>): Promise<Listed<EolTag & { uid: string }>> {
  const listed = await listTags(call, query)
  const walk = readingOf(call.signal)
  const judged: (EolTag & { uid: string })[] = []
  for (const [repoUid, tags] of Map.groupBy(listed.items, ({ uid }) => parentOf(uid))) {
    const found = await judge(call.app, repoUid, tags, call.now, walk)
    judged.push(...found.tags.map((one) => ({ ...one, uid: one.tag.uid })))
    if (found.tags.length < tags.length) break
  }
  if (judged.length === listed.items.length) return { ...listed, items: judged }
  // More tags follow the last one that was examined, on this page or the next.
  const rest = { ...judged.at(-1)!, uid: '' }
  return toListed(call, { ...query.page, size: judged.length }, [...judged, rest], listed.total)
}

export type JudgedTags = { tags: EolTag[]; fresh: StoredMain[]; repo: number }

/** Status of the first tags of one repository, as many as can be read at once. */
export async function judge(
  app: App,
  repoUid: string,
  tags: readonly Judged[],
  now: string,
  walk: Walk,
): Promise<JudgedTags> {
  const { db } = app
  const organization = rootOf(repoUid)
  const [repo, row, settings] = await Promise.all([
    findRepo(db, repoUid),
    findRepoRow(db, { uid: repoUid }),
    findSettings(db, organization),
  ])
  if (!repo || !row) return { tags: tags.map((tag) => unknownOf(tag, now)), fresh: [], repo: 0 }
  const digests = tags.flatMap(({ digest }) => (digest === '' ? [] : [digest]))
  const { mains, fresh } = await mainPackagesOf(app, row, digests, walk)
  const lines = new Map<string, Release[]>()
  const judged: EolTag[] = []
  for (const tag of tags) {
    const main = mains.get(tag.digest)
    if (!main && tag.digest !== '') break
    const release = main && (await releaseOf(db, main, lines))
    const isListed = repo.activeTags.length === 0 || repo.activeTags.includes(tag.name)
    const rebuilt = !tag.deprecated && isListed && !(await isSuperseded(db, row.id, tag.name))
    const standing = supportStateOf({ now, release, grace: settings?.eolGracePeriod ?? false, rebuilt })
    judged.push({ tag, main, release, standing })
  }
  return { tags: judged, fresh, repo: row.id }
}

function unknownOf(tag: Judged, now: string): EolTag {
  const standing = supportStateOf({ now, release: undefined, grace: false, rebuilt: !tag.deprecated })
  return { tag, main: undefined, release: undefined, standing }
}

async function releaseOf(reader: Reader, { product, cycle }: StoredMain, lines: Map<string, Release[]>) {
  if (product === '' || cycle === '') return undefined
  const known = lines.get(product) ?? (await releasesOf(reader, product))
  lines.set(product, known)
  return known.find((one) => one.cycle === cycle)
}

const mostEpochs = 100

/** True if the repository has a later build of the same version, such as `1.2-r4` for `1.2-r3`. */
async function isSuperseded(reader: Reader, repo: number, name: string): Promise<boolean> {
  const [, prefix, number] = /^(.+-r)(\d+)$/.exec(name) ?? []
  if (prefix === undefined || number === undefined) return false
  const later = await store.laterEpochs(reader, repo, prefix, name, mostEpochs)
  return later.some((one) => {
    const other = one.slice(prefix.length)
    return /^\d+$/.test(other) && BigInt(other) > BigInt(number)
  })
}
