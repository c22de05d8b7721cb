// Emits the events of recorded changes, one for each affected repository. One transaction writes the events of several
// repositories together with the progress.

import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import { packageUrl } from '#contents/package-url.ts'
import type { Lease } from '#db/leases.ts'
import type { Tx } from '#db/sql.ts'
import { type EventInput, emitEach } from '#domains/outbox/emit.ts'
import { liveTags, reposOfLists, type TaggedImage } from '#domains/registry/images/image-lists.store.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import { ownCause } from '#lib/cause.ts'
import { chunks } from '#lib/chunks.ts'
import { isAtOrBelow, parentOf, rootOf } from '#lib/uid.ts'
import { findingStates } from '../findings/findings.model.ts'
import { levelName, worse } from '../findings/severity.model.ts'
import {
  type FoundIn,
  foundInList,
  listsHashed,
  listsOf,
  listsWithAny,
  type NamedList,
} from '../images/images.store.ts'
import { acceptedAt } from '../risks/accepted.service.ts'
import {
  type AnnouncedChange,
  type Change,
  toFoundVulnerabilityResource,
  toResolvedVulnerabilityResource,
} from './changes.model.ts'
import * as store from './changes.store.ts'
import * as later from './changes.store.ts'

const reposAtOnce = 20
const listsAtOnce = 500
const componentsAtOnce = 1000
/**
 * Limit on the findings of a vulnerability that are read from one package list. Applies separately to shared findings and to
 * findings of the organization.
 */
const mostFound = 1000
const shown = { tags: 100, purls: 20 }

/** Emits the events of all recorded changes. Returns the number of events. */
export async function emitChanges(app: App, lease: Lease): Promise<number> {
  let events = 0
  while (lease.holds()) {
    const change = await store.nextChange(app.db)
    if (!change) break
    // Later findings of the vulnerability are another change from now on.
    await lease.tx((tx) => store.beginChange(tx, change.changeNo))
    events += await emitChange(app, lease, change)
  }
  return events
}

async function emitChange(app: App, lease: Lease, change: Change): Promise<number> {
  const telling: ReportedChange = {
    ...change,
    listsOf: (tags) => listsFor(app, change, tags),
    // The list does not have all findings, or is still being compared after it was over its limit.
    isAtRest: async (list) => !list.isOver && !(await later.waitsForMatch(app.db, list.listNo)),
    async note(tx, repo, lists) {
      await later.noteLater(tx, change, lists.later)
      await later.forgetLater(tx, change, lists.told)
      await store.noteRepo(tx, change.changeNo, repo)
    },
  }
  const events = await emitForRepos(app, lease, telling, await reposOf(app, lease, change))
  await lease.tx((tx) => store.endChange(tx, change.changeNo))
  return events
}

/** A change to report, with the affected package lists and the last repository that was processed. */
export type ReportedChange = Pick<Change, 'vulnerability' | 'organization' | 'kind' | 'lastRepo'> & {
  listsOf(tags: readonly TaggedImage[]): Promise<Map<TaggedImage, NamedList>>
  /**
   * True if all findings of a package list are known. Only then does a missing finding mean that the vulnerability is resolved.
   */
  isAtRest(list: NamedList): Promise<boolean>
  /** Stores that all repositories up to this one were processed, in the transaction that writes their events. */
  note(tx: Tx, repo: number, lists: Resolved): Promise<void>
}

/**
 * Package lists that no longer have the vulnerability. `told`: reported now. `later`: reported once the list was compared
 * completely.
 */
type Resolved = { told: Set<number>; later: Set<number> }

/**
 * Emits the events for repositories that were not processed yet, in the order of repository numbers. Returns the number of
 * events.
 */
async function emitForRepos(
  app: App,
  lease: Lease,
  telling: ReportedChange,
  repos: readonly RepoAt[],
): Promise<number> {
  const name =
    telling.kind === 'found' ? 'control.registry.vulnerability.found' : 'control.registry.vulnerability.resolved'
  const left = repos.filter(({ repo }) => repo > telling.lastRepo).sort((one, other) => one.repo - other.repo)
  let events = 0
  for (const some of chunks(left, reposAtOnce)) {
    lease.check()
    const inputs: EventInput[] = []
    const lists: Resolved = { told: new Set(), later: new Set() }
    for (const one of some) {
      const told = await findReportedChange(app, telling, one, lists)
      if (told) inputs.push(toEventInput(telling, told))
    }
    await lease.tx(async (tx) => {
      if (inputs.length > 0) await emitEach(tx, { app, cause: ownCause(app.clock) }, name, inputs)
      await telling.note(tx, some.at(-1)!.repo, lists)
    })
    events += inputs.length
  }
  return events
}

export type RepoAt = { repo: number; repoUid: string; name: string }

/** Repositories with an image that contains one of the packages. */
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
  return [...repos.values()].filter(({ repoUid }) => isWithin(change, repoUid))
}

export const isWithin = ({ organization }: Pick<Change, 'organization'>, repoUid: string): boolean =>
  organization === '' || isAtOrBelow(repoUid, organization)

/**
 * Event content for one repository. Returns undefined if no tag points to an affected image, or if the findings of the repository
 * did not change.
 */
async function findReportedChange(
  app: App,
  change: ReportedChange,
  at: RepoAt,
  resolved: Resolved,
): Promise<AnnouncedChange | undefined> {
  const { db } = app
  const tags = await liveTags(db, at.repo)
  const lists = await change.listsOf(tags)
  if (lists.size === 0) return undefined
  const told: { tag: TaggedImage; found: readonly FoundIn[] }[] = []
  const byList = Map.groupBy(lists.keys(), (tag) => lists.get(tag)!)
  for (const [list, tagged] of byList) {
    const all: FoundIn[] = []
    for (const organization of ['', rootOf(at.repoUid)]) {
      all.push(...(await foundInList(db, list.listNo, { name: change.vulnerability, organization }, mostFound)))
    }
    if (change.kind === 'resolved') {
      if (all.some(({ isSuppressed }) => !isSuppressed)) continue
      const isAtRest = await change.isAtRest(list)
      resolved[isAtRest ? 'told' : 'later'].add(list.listNo)
      if (!isAtRest) continue
    }
    for (const tag of tagged) {
      const found = await foundFor(app, change, all, { repoUid: at.repoUid, digest: tag.digest }, list)
      if (found) told.push({ tag, found: found.slice(0, shown.purls) })
    }
    await setImmediate()
  }
  told.sort((one, other) => (one.tag.tag < other.tag.tag ? -1 : 1))
  return told.length === 0 ? undefined : toReportedChange(app, change, at, told)
}

/**
 * Findings of an image to report, the most severe first. Empty for an image in which the vulnerability is resolved. Returns
 * undefined if there is nothing to report.
 */
async function foundFor(
  app: App,
  change: ReportedChange,
  all: readonly FoundIn[],
  image: { repoUid: string; digest: string },
  list: NamedList,
): Promise<FoundIn[] | undefined> {
  if (change.kind === 'resolved') return []
  const certain = all.filter(({ isSuppressed, state }) => !isSuppressed && state === findingStates.vulnerable)
  const found = await withoutAccepted(app, change, certain, image, list)
  return found.length === 0 ? undefined : found
}

/**
 * For each tag, the package list of its image. Contains only lists that have one of the packages and were compared before the
 * change.
 */
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
  change: ReportedChange,
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

async function toReportedChange(
  { db }: App,
  { vulnerability }: ReportedChange,
  { repoUid, name }: RepoAt,
  told: readonly { tag: TaggedImage; found: readonly FoundIn[] }[],
): Promise<AnnouncedChange> {
  const purls = told.flatMap(({ tag, found }) =>
    found.map(({ component }) => packageUrl(component, tag.list.distribution.id)),
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

const toEventInput = ({ kind }: ReportedChange, told: AnnouncedChange): EventInput => ({
  subject: told.repoId,
  resource: kind === 'found' ? toFoundVulnerabilityResource(told) : toResolvedVulnerabilityResource(told),
  extensions: { vulnerability: told.vulnerability },
})

const atOnce = 200

/** Emits events for resolved vulnerabilities of package lists whose comparison is now complete. Returns the number of events. */
export async function emitResolved(app: App, lease: Lease): Promise<number> {
  let events = 0
  for (let after = 0; lease.holds(); ) {
    const listNo = await store.nextLater(app.db, after)
    if (listNo === undefined) break
    after = listNo
    const [list] = await listsOf(app.db, [listNo])
    if (list && (list.isOver || (await store.waitsForMatch(app.db, listNo)))) continue
    events += await tellList(app, lease, listNo, list)
  }
  return events
}

/** Emits the events of one package list. Emits no event if the list was deleted. */
async function tellList(app: App, lease: Lease, listNo: number, list: NamedList | undefined): Promise<number> {
  const repos = list ? await reposOfLists(app.db, [list.key.hash]) : []
  let events = 0
  for (;;) {
    const some = await store.laterOf(app.db, listNo, atOnce)
    if (some.length === 0) return events
    for (const one of some) {
      const telling: ReportedChange = {
        ...{ ...one, kind: 'resolved' },
        listsOf: async (tags) => new Map(list ? tags.filter(isOf(list)).map((tag) => [tag, list]) : []),
        isAtRest: async () => true,
        note: (tx, repo) => store.noteLaterRepo(tx, listNo, one, repo),
      }
      const within = repos.filter(({ repoUid }) => isWithin(one, repoUid))
      events += await emitForRepos(app, lease, telling, within)
      await lease.tx((tx) => store.forgetLater(tx, one, [listNo]))
    }
  }
}

const isOf =
  ({ key: { hash, distribution } }: NamedList) =>
  ({ list }: { list: NamedList['key'] }): boolean =>
    list.hash === hash && list.distribution.id === distribution.id && list.distribution.version === distribution.version
