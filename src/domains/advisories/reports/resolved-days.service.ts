// Finds vulnerabilities that tag updates resolved, by comparing the packages of the images with advisories.
import type { Call } from '#app.ts'
import { isOfDistribution, type Package } from '#contents/packages.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { knownContents, packagesOf } from '#domains/registry/images/image-contents.service.ts'
import { movesBefore, movesBetween } from '#domains/registry/tags/tag-history.store.ts'
import { invalid } from '#lib/errors.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { type Advisory, advisoriesAbout, findPublicOrganization } from '../advisories/publication.service.ts'
import { affects, namesOf } from './affected.ts'
import { dayMs, maxEarlierMoves, maxMoves, reportWalk } from './resolved-reports.model.ts'

export type FollowedTag = { repo: { id: number; uid: string; ledger: number }; tag: string }

/** A tag update to an image whose contents are known. `list` is the hash of the image's package list. */
type Step = { time: string; list: string }

/**
 * Vulnerabilities that tag updates resolved, by day. `days` must be in order and without gaps. Days without resolved
 * vulnerabilities are missing.
 */
export async function resolvedByDay(
  call: Call,
  tags: readonly FollowedTag[],
  { days, start, end }: { days: readonly string[]; start: string; end: string },
): Promise<Map<string, Advisory[]>> {
  const [first, last] = [days[0], days.at(-1)]
  if (first === undefined || last === undefined) return new Map()
  const lastMoment = new Date(Date.parse(last) + dayMs - 1).toISOString()
  const from = start > first ? start : first
  const to = end < lastMoment ? end : lastMoment
  const resolved = new Map<string, Map<string, Advisory>>()
  const knowledge = new Map<string, AdvisoriesOf>()
  const walk = new Walk(reportWalk, call.signal, (limit) => {
    const description = `the package lists of the images have more than ${limit}; use fewer tags, or a shorter time between start_time and end_time`
    return invalid({ field: 'image_refs', description })
  })
  let left = maxMoves
  for (const followed of tags) {
    const root = rootOf(followed.repo.uid)
    const known = knowledge.get(root) ?? new AdvisoriesOf(call, root)
    knowledge.set(root, known)
    const { before, steps, moves } = await stepsOf(call, followed, { from, to, most: left })
    left -= moves
    for await (const { day, gone } of resolvedSteps(call, { known, walk }, before, steps)) {
      resolved.set(day, new Map([...(resolved.get(day) ?? []), ...gone]))
    }
  }
  const sorted = (found: Map<string, Advisory>) => [...found.values()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
  return new Map([...resolved].map(([day, found]) => [day, sorted(found)]))
}

const idOf = ({ advisoryId, uid }: Advisory): string => `${advisoryId} ${uid}`

/**
 * Advisories that tag updates resolved, for each day with tag updates. An advisory is left out if a later update of the same day
 * made it apply again.
 */
async function* resolvedSteps(
  call: Call,
  { known, walk }: { known: AdvisoriesOf; walk: Walk },
  before: string | undefined,
  steps: readonly Step[],
) {
  let current = before === undefined ? undefined : await loadPackages(call, before, walk)
  for (const [day, ofDay] of Map.groupBy(steps, ({ time }) => `${time.slice(0, 10)}T00:00:00.000Z`)) {
    const gone = new Map<string, Advisory>()
    for (const { list } of ofDay) {
      if (list === current?.list) continue
      // Comparing many images can take long, so the loop yields to other requests after each image.
      const next = await loadPackages(call, list, walk)
      if (current) for (const advisory of await known.resolvedBetween(current, next)) gone.set(advisory.uid, advisory)
      current = next
    }
    for (const [uid, advisory] of gone) if (isAffected(current!, advisory)) gone.delete(uid)
    yield { day, gone }
  }
}

/** Packages of one image. `byKey` finds equal packages, `byName` the packages with a name that advisories can use. */
type PackageSet = { list: string; byKey: Map<string, Package>; byName: Map<string, Package[]> }

async function loadPackages({ app: { db } }: Call, list: string, walk: Walk): Promise<PackageSet> {
  const byKey = new Map<string, Package>()
  const byName = new Map<string, Package[]>()
  for (const one of (await packagesOf(db, list, walk)).filter(isOfDistribution)) {
    byKey.set(Object.values(one).join('\0'), one)
    for (const name of namesOf(one)) byName.set(name, [...(byName.get(name) ?? []), one])
  }
  return { list, byKey, byName }
}

function isAffected({ byName }: PackageSet, advisory: Advisory): boolean {
  return (byName.get(advisory.artifactName) ?? []).some((one) => affects(advisory, one))
}

type Range = { from: string; to: string; most: number }

/**
 * Package list of the tag before the range, and the tag's updates in the range to images whose contents are known. Throws
 * INVALID_ARGUMENT if there are too many updates.
 */
async function stepsOf({ app: { db } }: Call, { repo, tag }: FollowedTag, { from, to, most }: Range) {
  const moves = await movesBetween(db, repo.ledger, tag, { from, to, most: most + 1 })
  if (moves.length > most) {
    const description = `the tags were updated more than ${maxMoves} times in this time; use fewer tags, or a shorter time between start_time and end_time`
    throw invalid({ field: 'image_refs', description })
  }
  if (moves.length === 0) return { before: undefined, steps: [], moves: 0 }
  const earlier = await movesBefore(db, repo.ledger, tag, { before: from, most: maxEarlierMoves })
  const lists = await knownContents(
    db,
    repo.id,
    [...earlier, ...moves].map(({ digest }) => digest),
  )
  const before = earlier.map(({ digest }) => lists.get(digest)).find((list) => list !== undefined)
  const steps = moves.flatMap(({ time, digest }): Step[] => {
    const list = lists.get(digest)
    return list === undefined ? [] : [{ time, list }]
  })
  return { before, steps, moves: moves.length }
}

const listAdvisories = capabilityNumber('advisories.list')

/** Advisories that apply to images of an organization. This cache lives as long as a request. */
class AdvisoriesOf {
  readonly #call: Call
  readonly #root: string
  readonly #byName = new Map<string, Advisory[]>()
  #scopes: readonly string[] | undefined

  constructor(call: Call, root: string) {
    this.#call = call
    this.#root = root
  }

  /**
   * Advisories that affect a package of the image before the update, and no package of the image after it. Only packages that
   * differ are compared.
   */
  async resolvedBetween(before: PackageSet, after: PackageSet): Promise<Advisory[]> {
    const gone = [...before.byKey].filter(([key]) => !after.byKey.has(key)).map(([, one]) => one)
    await this.#read(gone.flatMap(namesOf))
    const about = gone.flatMap((one) =>
      namesOf(one).flatMap((name) => this.#byName.get(name)!.map((advisory) => ({ one, advisory }))),
    )
    return about
      .filter(({ one, advisory }) => affects(advisory, one) && !isAffected(after, advisory))
      .map(({ advisory }) => advisory)
  }

  async #read(names: readonly string[]): Promise<void> {
    const unread = [...new Set(names)].filter((name) => !this.#byName.has(name))
    if (unread.length === 0) return
    this.#scopes ??= await this.#findScopes()
    for (const name of unread) this.#byName.set(name, [])
    for (const found of await advisoriesAbout(this.#call.app.db, this.#scopes, unread)) {
      this.#byName.get(found.artifactName)!.push(found)
    }
  }

  /**
   * Organizations whose advisories apply. For all callers, this is the public organization. For callers who can list the
   * advisories of the image's organization, also that organization.
   */
  async #findScopes(): Promise<readonly string[]> {
    const { app, caller } = this.#call
    const published = await findPublicOrganization(app)
    const own = caller.rights.roots([listAdvisories]).flatMap((scope) => {
      return isAtOrBelow(this.#root, scope) ? [this.#root] : isAtOrBelow(scope, this.#root) ? [scope] : []
    })
    return [...new Set([...(published === undefined ? [] : [published]), ...own])]
  }
}
