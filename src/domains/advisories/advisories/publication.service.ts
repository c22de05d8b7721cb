import { setImmediate } from 'node:timers/promises'
import type { App, Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { findOrganization } from '#domains/iam/groups/groups.service.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import { type Advisory, type AdvisoryEvent, reviewStates } from './advisories.model.ts'
import { findAdvisory } from './advisories.store.ts'
import { isTold } from './advisory-terms.model.ts'
import * as store from './publication.store.ts'

export type { Advisory, AdvisoryEvent } from './advisories.model.ts'

/** The advisories of one origin package, each with its approved events only. */
export type Publication = { id: string; uid: string; advisories: Advisory[] }

/** An answer holds no more advisories than this, unless one package has more. */
const maxAdvisories = 5000

/** What the public organisation publishes, one document for each origin package, for anybody to read. */
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
  const shown = origins.slice(0, Math.min(page.size, howMany(origins)))
  const advisories = await store.listPublished(
    db,
    group.uid,
    shown.map(({ term }) => term),
  )
  const byOrigin = Map.groupBy(advisories, ({ origin }) => origin)
  const items = origins.slice(0, shown.length + 1).map(({ origin }) => ({
    id: origin,
    uid: origin,
    advisories: (byOrigin.get(origin) ?? []).map(withApproved),
  }))
  return toListed(call, { ...page, size: shown.length }, items, total)
}

/** The group whose advisories anybody may read; undefined while there is none. */
export async function publicPlace({ db, config }: { db: Reader; config: App['config'] }): Promise<string | undefined> {
  return (await findOrganization(db, config.publicOrg))?.uid
}

/** An advisory with its approved events only; undefined when there is none. */
export async function findForMatching(reader: Reader, uid: string): Promise<Advisory | undefined> {
  const found = await findAdvisory(reader, uid)
  return found && { ...found.advisory, events: found.advisory.events.filter(isApproved) }
}

/** The uids of advisories behind one, in order. */
export const advisoriesAfter = store.uidsAfter

const namesAtOnce = 20

/** The advisories about artifacts of these names in some groups and below, each with its approved events only. */
export async function advisoriesAbout(
  reader: Reader,
  places: readonly string[],
  names: readonly string[],
): Promise<Advisory[]> {
  const found: Advisory[] = []
  for (let done = 0; done < names.length && places.length > 0; done += namesAtOnce) {
    found.push(...(await store.listAbout(reader, places, names.slice(done, done + namesAtOnce))))
    // There may be thousands of them, and others want to be served too.
    await setImmediate()
  }
  return found.map((advisory) => ({ ...advisory, events: advisory.events.filter(isApproved) }))
}

const isApproved = ({ reviewState }: AdvisoryEvent): boolean => reviewState === reviewStates.approved

/** As many as hold few enough advisories together, and one at least. */
function howMany(origins: readonly store.PublishedOrigin[]): number {
  let sum = 0
  const over = origins.findIndex(({ advisories }, i) => {
    sum += advisories
    return sum > maxAdvisories && i > 0
  })
  return over < 0 ? origins.length : over
}

function withApproved(advisory: Advisory): Advisory {
  const { events } = advisory
  return { ...advisory, events: events.filter(isTold) }
}
