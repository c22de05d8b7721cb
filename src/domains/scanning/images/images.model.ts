import type { Fields } from '#lib/fields.ts'

/** Without `order_by`, images are listed by package list, in the order in which they are found. */
export const imageFields = {
  list: { column: 'list' },
  repoUid: { column: 'repo_uid', sort: true },
} as const satisfies Fields<{ list: string; repoUid: string }>

export const packageFields = {
  number: { column: 'number', sort: true },
  name: { column: 'name', sort: true },
} as const satisfies Fields<{ number: string; name: string }>

/**
 * Limit on the images in a scope that are checked one by one. In a scope with more images, the search begins with all lists that
 * have the package or vulnerability.
 */
export const mostScoped = 2000
/** Limit on the packages that match a search. If more packages match, all lists are checked. */
export const mostComponents = 20_000
/** Time limit for one page in ms. After this time, the page is returned with the images that were found. */
export const pageMs = 1000
/** Limits on counting images: a time in ms and a number of images. If a limit is exceeded, the answer has no total. */
export const countMs = 500
export const mostCounted = 1000

/** Limits on the tags and packages that an answer shows for one image. */
export const mostTags = 100
export const mostPurls = 20
/**
 * Limit on the matches that are read from one list. Applies separately to shared findings and to the findings of each
 * organization.
 */
export const mostHits = 100
/** Time limit in ms for counting images that are not completely scanned. */
export const unknownMs = 500
/** Limit on the number of images with unknown contents that are counted. */
export const mostUnknown = 1000
