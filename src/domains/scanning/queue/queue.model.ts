// The numbers are stored and must not change.
/**
 * Kinds of queued work: a package with changed advisories, a changed advisory of our own, a new package list, changed counts in
 * lists, and package lists of earlier releases.
 */
export const matchKinds = { package: 1, advisory: 2, list: 3, counts: 4, backfill: 5 } as const
export type MatchKind = keyof typeof matchKinds

/** `place` is the organization whose turn it is. Empty for shared data. */
export type MatchItem = { kind: MatchKind; place: string; item: string }

/** `progress` is the state of an interrupted item. Empty at the beginning. */
export type DueMatch = MatchItem & { progress: string; dueTime: string; attempts: number; owner: string; fence: number }

/** Queue item of a package in an ecosystem. */
export const packageItem = (ecosystem: string, name: string): string => `${ecosystem}\n${name}`

export function readPackageItem(item: string): { ecosystem: string; name: string } {
  const end = item.indexOf('\n')
  return { ecosystem: item.slice(0, end), name: item.slice(end + 1) }
}

/**
 * Queue items of the kind `counts`: lists with a package whose number of findings has changed, and one list that is counted
 * completely. Earlier releases use a bare number for a list, so they cannot mistake either for one.
 */
export const changedPackage = (componentNo: number): string => `c${componentNo}`
export const wholeList = (listNo: number): string => `l${listNo}`

export function readCountsItem(item: string): { componentNo: number } | { listNo: number } {
  if (item.startsWith('c')) return { componentNo: Number(item.slice(1)) }
  return { listNo: Number(item.startsWith('l') ? item.slice(1) : item) }
}
