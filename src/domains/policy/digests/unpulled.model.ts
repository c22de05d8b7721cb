/** For how many days nothing may have been pulled, unless the request says otherwise, and at most: usage goes back as far. */
export const defaultDays = 30
export const mostDays = 90
export const mostExcepted = 20
/** How many manifests are looked at for a page. */
export const lookedAt = 1000
/** In a repo with more manifests the total is not counted. */
export const mostCounted = 10_000
export const mostTags = 10
