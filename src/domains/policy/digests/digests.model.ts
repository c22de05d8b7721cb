import type { Fields } from '#lib/fields.ts'

/** A manifest that is about another one, without its annotations. */
export type ReferrerRow = { digest: string; mediaType: string; artifactType: string; size: number }

/** The only order of lists of manifests. */
export const digestFields = { digest: { column: 'digest', sort: true } } as const satisfies Fields<ReferrerRow>

/** What one caller has done with a manifest on the days that were looked at. */
export type Puller = { caller: string; lastTime: string; gets: number; checks: number }
