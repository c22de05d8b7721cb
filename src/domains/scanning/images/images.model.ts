import type { Fields } from '#lib/fields.ts'

/** Lists of images have one order, which clients cannot name. */
export const imageFields = { list: { column: 'list', sort: true } } as const satisfies Fields<{ list: string }>

export const packageFields = {
  number: { column: 'number', sort: true },
  name: { column: 'name', sort: true },
} as const satisfies Fields<{ number: string; name: string }>

/**
 * Limit on the images in a scope that are checked one by one. In a larger scope, all lists with the package or vulnerability are
 * searched.
 */
export const mostScoped = 2000
/** Limit on the packages of a search. Beyond it, all lists are checked. */
export const mostComponents = 20_000
/** Time limit for one page in ms. After it, the page is returned as it is. */
export const pageMs = 1000
/** Limits on counting images, in ms and images. Beyond them there is no total. */
export const countMs = 500
export const mostCounted = 1000

/** Limits on the shown tags and packages of an image. */
export const mostTags = 100
export const mostPurls = 20
/** Limit on the matches that are read from one list, for shared findings and for those of one organization each. */
export const mostHits = 100
/** Time limit in ms for counting images that are not completely scanned. */
export const unknownMs = 500
/** Limit on counting images with unknown contents. */
export const mostUnknown = 1000
