import type { Call } from '#app.ts'
import { findOrganization } from '#domains/iam/groups.service.ts'
import { type Listed, type Page, toListed } from '#lib/paging.ts'
import { type Advisory, reviewStates } from './advisories.model.ts'
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
  const told = events.filter(({ reviewState, type }) => reviewState === reviewStates.approved && type !== 'patched')
  return { ...advisory, events: told }
}
