// Writes the events of changes, repo by repo: those of some repos and how far it has come commit together.
import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import { packageUrl } from '#contents/package-url.ts'
import type { PackageKind } from '#contents/packages.ts'
import type { Lease } from '#db/leases.ts'
import { type EventInput, emitEach } from '#domains/events/outbox/emit.ts'
import { liveTags, reposOfLists, type TaggedImage } from '#domains/registry/images/image-lists.service.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import { ownCause } from '#lib/cause.ts'
import { chunks } from '#lib/chunks.ts'
import { isAtOrBelow, parentOf, rootOf } from '#lib/uid.ts'
import {
  type FoundIn,
  foundInList,
  listsHashed,
  listsOf,
  listsWithAny,
  type NamedList,
} from '../images/images.store.ts'
import { findingStates } from '../matching/findings.model.ts'
import { levelName, worse } from '../matching/severity.model.ts'
import { acceptedAt } from '../risks/accepted.service.ts'
import { aFoundVulnerability, aResolvedVulnerability, type Change, type ToldChange } from './changes.model.ts'
import * as store from './changes.store.ts'

const reposAtOnce = 20
const listsAtOnce = 500
const componentsAtOnce = 1000
/** How much of a vulnerability is looked at in one list, for everybody and for the organisation each. */
const mostFound = 1000
const shown = { tags: 100, purls: 20 }

/** Tells of all changes that wait; answers with how many events that were. */
export async function tellChanges(app: App, lease: Lease): Promise<number> {
  let events = 0
  while (lease.holds()) {
    const change = await store.nextChange(app.db)
    if (!change) break
    // From now on whatever else is found of it is another change.
    await lease.tx((tx) => store.beginChange(tx, change.changeNo))
    events += await tellChange(app, lease, change)
  }
  return events
}

async function tellChange(app: App, lease: Lease, change: Change): Promise<number> {
  let events = 0
  const repos = (await reposOf(app, lease, change)).filter(({ repo }) => repo > change.lastRepo)
  for (const some of chunks(repos, reposAtOnce)) {
    lease.check()
    const inputs: EventInput[] = []
    for (const one of some) {
      const told = await toldOf(app, change, one)
      if (told) inputs.push(inputOf(change, told))
    }
    const name =
      change.kind === 'found' ? 'control.registry.vulnerability.found' : 'control.registry.vulnerability.resolved'
    await lease.tx(async (tx) => {
      if (inputs.length > 0) await emitEach(tx, { app, cause: ownCause(app.clock) }, name, inputs)
      await store.noteRepo(tx, change.changeNo, some.at(-1)!.repo)
    })
    events += inputs.length
  }
  await lease.tx((tx) => store.endChange(tx, change.changeNo))
  return events
}

type RepoAt = { repo: number; repoUid: string; name: string }

/** The repos that have an image with one of the packages, by number. */
async function reposOf({ db }: App, lease: Lease, change: Change): Promise<RepoAt[]> {
  const repos = new Map<number, RepoAt>()
  for (let after = 0; ; ) {
    const components = await store.changedComponents(db, change.changeNo, { after, most: componentsAtOnce })
    const last = components.at(-1)
    if (last === undefined) break
    after = last
    for (let from = 0; ; ) {
      lease.check()
      const lists = await listsWithAny(db, components, from, listsAtOnce)
      if (lists.length === 0) break
      from = lists.at(-1)! + 1
      const hashes = new Set((await listsOf(db, lists)).map(({ key }) => key.hash))
      for (const one of await reposOfLists(db, [...hashes])) repos.set(one.repo, one)
    }
  }
  const within = [...repos.values()].filter(({ repoUid }) => change.place === '' || isAtOrBelow(repoUid, change.place))
  return within.sort((one, other) => one.repo - other.repo)
}

/** What there is to tell for one repo; nothing where no tag points to such an image, or nothing has changed there. */
async function toldOf(app: App, change: Change, at: RepoAt): Promise<ToldChange | undefined> {
  const { db } = app
  const tags = await liveTags(db, at.repo)
  const lists = await listsFor(app, change, tags)
  if (lists.size === 0) return undefined
  const told: { tag: TaggedImage; found: readonly FoundIn[] }[] = []
  const byList = Map.groupBy(lists.keys(), (tag) => lists.get(tag)!)
  for (const [list, tagged] of byList) {
    const all: FoundIn[] = []
    for (const place of ['', rootOf(at.repoUid)]) {
      all.push(...(await foundInList(db, list.listNo, { name: change.vulnerability, place }, mostFound)))
    }
    for (const tag of tagged) {
      const found = await foundFor(app, change, all, { repoUid: at.repoUid, digest: tag.digest }, list)
      if (found) told.push({ tag, found: found.slice(0, shown.purls) })
    }
    await setImmediate()
  }
  told.sort((one, other) => (one.tag.tag < other.tag.tag ? -1 : 1))
  return told.length === 0 ? undefined : toTold(app, change, at, told)
}

/** What there is to tell of an image, the worst first: nothing, where that is so, of one in which it is resolved. */
async function foundFor(
  app: App,
  change: Change,
  all: readonly FoundIn[],
  image: { repoUid: string; digest: string },
  list: NamedList,
): Promise<FoundIn[] | undefined> {
  const counted = all.filter(({ isSuppressed }) => !isSuppressed)
  // Of versions that cannot be compared, and where more is found than is kept, nobody knows whether it is resolved.
  if (change.kind === 'resolved') return counted.length === 0 && !list.isOver ? [] : undefined
  const certain = counted.filter(({ state }) => state === findingStates.vulnerable)
  const found = await withoutAccepted(app, change, certain, image, list)
  return found.length === 0 ? undefined : found
}

/** The list of each tag's image that has one of the packages, and that was compared before the change. */
async function listsFor(
  { db }: App,
  change: Change,
  tags: readonly TaggedImage[],
): Promise<Map<TaggedImage, NamedList>> {
  const named = await listsHashed(db, [...new Set(tags.map(({ list }) => list.hash))])
  const keyOf = ({ hash, distribution }: NamedList['key']) =>
    JSON.stringify([hash, distribution.id, distribution.version])
  const byKey = new Map(named.map((one) => [keyOf(one.key), one]))
  const numbers = named.map(({ listNo }) => listNo)
  const touched = await store.listsOfChange(db, change.changeNo, numbers)
  return new Map(
    tags.flatMap((tag): [TaggedImage, NamedList][] => {
      const list = byKey.get(keyOf(tag.list))
      return list && touched.has(list.listNo) ? [[tag, list]] : []
    }),
  )
}

async function withoutAccepted(
  app: App,
  change: Change,
  found: readonly FoundIn[],
  image: { repoUid: string; digest: string },
  { key }: NamedList,
): Promise<FoundIn[]> {
  const now = app.clock().toISOString()
  const acceptedOf = await acceptedAt(app.db, found, image, key.distribution.id)
  return found.filter((one) => {
    return !acceptedOf(one).some((by) => by.vulnerability === change.vulnerability && by.untilTime > now)
  })
}

async function toTold(
  { db }: App,
  { vulnerability }: Change,
  { repoUid, name }: RepoAt,
  told: readonly { tag: TaggedImage; found: readonly FoundIn[] }[],
): Promise<ToldChange> {
  const purls = told.flatMap(({ tag, found }) =>
    found.map(({ component }) =>
      packageUrl({ ...component, kind: component.kind as PackageKind }, tag.list.distribution.id),
    ),
  )
  const levels = told.flatMap(({ found }) => found.map(({ severity }) => severity))
  return {
    repository: await pathIn(db, parentOf(repoUid), name),
    ...{ repoId: repoUid, vulnerability },
    severity: levels.length === 0 ? '' : levelName(levels.reduce(worse)),
    tags: told.slice(0, shown.tags).map(({ tag }) => ({ tag: tag.tag, digest: tag.digest })),
    moreTags: told.length > shown.tags,
    purls: [...new Set(purls)].sort().slice(0, shown.purls),
  }
}

const inputOf = ({ kind }: Change, told: ToldChange): EventInput => ({
  subject: told.repoId,
  group: parentOf(told.repoId),
  resource: kind === 'found' ? aFoundVulnerability(told) : aResolvedVulnerability(told),
  extensions: { vulnerability: told.vulnerability },
})
