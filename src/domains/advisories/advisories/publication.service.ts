import { setImmediate } from 'node:timers/promises'
import type { App, Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { findOrganization } from '#domains/iam/groups/groups.service.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { type Advisory, type AdvisoryEvent, reviewStates } from './advisories.model.ts'
import { findAdvisory } from './advisories.store.ts'
import { isPublishedEvent } from './advisory-terms.model.ts'
import * as store from './publication.store.ts'

export type { Advisory, AdvisoryEvent } from './advisories.model.ts'

/** The published advisories of one origin package, each with its approved events only. */
export type Publication = { id: string; uid: string; advisories: Advisory[] }

/** Limit on the advisories of one answer. A single origin package can exceed this limit. */
const maxAdvisories = 5000

/** Lists the published advisories of the public organization, grouped by origin package. Callers need no authentication. */
export async function listPublications(
  call: Call,
  page: Page,
  filter: store.OriginFilter,
): Promise<Listed<Publication>> {
  const { db, config } = call.app
  const group = await findOrganization(db, config.publicOrg)
  if (!group) return { items: [], total: 0, next: '' }
  const [origins, total] = await Promise.all([
    store.listOrigins(db, group.uid, page, filter),
    store.countOrigins(db, group.uid, filter),
  ])
  const shown = origins.slice(0, Math.min(page.size, countWithinLimit(origins)))
  const terms = shown.map(({ term }) => term)
  const advisories = await store.listPublished(db, group.uid, terms)
  const byOrigin = Map.groupBy(advisories, ({ origin }) => origin)
  const items = origins.slice(0, shown.length + 1).map(({ origin }) => ({
    id: origin,
    uid: origin,
    advisories: (byOrigin.get(origin) ?? []).map(withApproved),
  }))
  return toListed(call, { ...page, size: shown.length }, items, total)
}

/** The organization whose advisories are public. Returns undefined if the organization does not exist. */
export async function findPublicOrganization({
  db,
  config,
}: {
  db: Reader
  config: App['config']
}): Promise<string | undefined> {
  return (await findOrganization(db, config.publicOrg))?.uid
}

/** Finds an advisory, with its approved events only. Returns undefined if the advisory does not exist. */
export async function findForMatching(reader: Reader, uid: string): Promise<Advisory | undefined> {
  const found = await findAdvisory(reader, uid)
  return found && { ...found.advisory, events: found.advisory.events.filter(isApproved) }
}

/** Uids of the advisories after a uid, in order. */
export const advisoriesAfter = store.uidsAfter

const namesAtOnce = 20

/** Advisories on artifacts with these names, in some groups and their descendants. Each advisory has its approved events only. */
export async function advisoriesAbout(
  reader: Reader,
  groups: readonly string[],
  names: readonly string[],
): Promise<Advisory[]> {
  const found: Advisory[] = []
  for (let done = 0; done < names.length && groups.length > 0; done += namesAtOnce) {
    found.push(...(await store.listAbout(reader, groups, names.slice(done, done + namesAtOnce))))
    // There can be thousands of names, so the loop yields to other requests after each chunk.
    await setImmediate()
  }
  return found.map((advisory) => ({ ...advisory, events: advisory.events.filter(isApproved) }))
}

const isApproved = ({ reviewState }: AdvisoryEvent): boolean => reviewState === reviewStates.approved

/** Number of origin packages whose advisories together stay within the limit. At least one. */
function countWithinLimit(origins: readonly store.PublishedOrigin[]): number {
  let sum = 0
  const over = origins.findIndex(({ advisories }, i) => {
    sum += advisories
    return sum > maxAdvisories && i > 0
  })
  return over < 0 ? origins.length : over
}

function withApproved(advisory: Advisory): Advisory {
  const { events } = advisory
  return { ...advisory, events: events.filter(isPublishedEvent) }
}
