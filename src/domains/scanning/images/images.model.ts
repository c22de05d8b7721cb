import type { Fields } from '#lib/fields.ts'

/** Lists of images have one order, which has no name for clients. */
export const imageFields = { list: { column: 'list', sort: true } } as const satisfies Fields<{ list: string }>

export const packageFields = {
  number: { column: 'number', sort: true },
  name: { column: 'name', sort: true },
} as const satisfies Fields<{ number: string; name: string }>

/** How many images of a place are looked at one by one; in a larger one all that have it are looked for. */
export const mostScoped = 2000
/** How many packages are looked for; beyond that all lists are looked at. */
export const mostComponents = 20_000
/** How long one page is looked for before it is answered with what there is, in milliseconds. */
export const pageMs = 1000
/** Limits of the count of images, in milliseconds and images; beyond them there is no total. */
export const countMs = 500
export const mostCounted = 1000

/** How much of an image is shown. */
export const mostTags = 100
export const mostPurls = 20
/** How much of what is looked for is read of one list, for everybody and for one organisation each. */
export const mostHits = 100
/** How long images are counted of which something is not known, in milliseconds. */
export const unknownMs = 500
/** Up to this many images are counted of which nobody knows what they contain. */
export const mostUnknown = 1000
