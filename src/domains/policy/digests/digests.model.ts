import type { Fields } from '#lib/fields.ts'

/** A manifest with a subject, without its annotations. */
export type ReferrerRow = { digest: string; mediaType: string; artifactType: string; size: number }

/** The only order of lists of manifests. */
export const digestFields = { digest: { column: 'digest', sort: true } } as const satisfies Fields<ReferrerRow>

/** Pulls of a manifest by one caller on the days that were read. */
export type Puller = { caller: string; lastTime: string; gets: number; checks: number }

/** Default and largest number of days without a pull, because usage is stored for that time. */
export const defaultDays = 30
export const mostDays = 90
export const mostExcepted = 20
/** Manifests that are checked for one page. */
export const lookedAt = 1000
/** The total is not counted in a repository with more manifests. */
export const mostCounted = 10_000
export const mostTags = 10
