import type { Fields } from '#lib/fields.ts'

/** A manifest with a subject, without its annotations. */
export type ReferrerRow = { digest: string; mediaType: string; artifactType: string; size: number }

/** Sort fields of lists of manifests. Only the digest can be used. */
export const digestFields = { digest: { column: 'digest', sort: true } } as const satisfies Fields<ReferrerRow>

/** Pulls of a manifest by one caller, on the days that a request reads. */
export type Puller = { caller: string; lastTime: string; gets: number; checks: number }

/** Default and largest number of days without a pull. Usage is stored for no longer than that. */
export const defaultDays = 30
export const mostDays = 90
export const mostExcepted = 20
/** Most manifests that are examined for one page. */
export const lookedAt = 1000
/** Most manifests of a repository that are counted. Above this number a list has no total. */
export const mostCounted = 10_000
export const mostTags = 10
