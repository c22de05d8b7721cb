import type { Fields } from '#lib/fields.ts'

/** A manifest that is about another one, without its annotations. */
export type ReferrerRow = { digest: string; mediaType: string; artifactType: string; size: number }

/** The only order of lists of manifests. */
export const digestFields = { digest: { column: 'digest', sort: true } } as const satisfies Fields<ReferrerRow>

/** What one caller has done with a manifest on the days that were looked at. */
export type Puller = { caller: string; lastTime: string; gets: number; checks: number }

/** For how many days nothing may have been pulled, unless the request says otherwise, and at most: usage goes back as far. */
export const defaultDays = 30
export const mostDays = 90
export const mostExcepted = 20
/** How many manifests are looked at for a page. */
export const lookedAt = 1000
/** In a repo with more manifests the total is not counted. */
export const mostCounted = 10_000
export const mostTags = 10
