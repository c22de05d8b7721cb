// The numbers are stored; they keep their meaning for good.
/**
 * What waits to be compared: a package of an ecosystem that something else is said of now; an advisory of ours that has
 * changed; a list of packages that is new; how much is found in lists; lists of before there was any of this.
 */
export const matchKinds = { package: 1, advisory: 2, list: 3, counts: 4, backfill: 5 } as const
export type MatchKind = keyof typeof matchKinds

/** `place` is whose turn it is: an organisation, or empty for what counts for everybody. */
export type MatchItem = { kind: MatchKind; place: string; item: string }

/** `progress`: how far it has come when it gave way to others; empty when it is to be begun. */
export type DueMatch = MatchItem & { progress: string; dueTime: string; attempts: number; owner: string; fence: number }

/** A package of an ecosystem, as an item of the queue. */
export const packageItem = (ecosystem: string, name: string): string => `${ecosystem}\n${name}`

export function readPackageItem(item: string): { ecosystem: string; name: string } {
  const end = item.indexOf('\n')
  return { ecosystem: item.slice(0, end), name: item.slice(end + 1) }
}

/**
 * Items of `counts`: the lists that have a package in which more is found now, or less, and one list that is counted as a whole.
 * Earlier builds name a list by its number only, and cannot take either for one.
 */
export const changedPackage = (componentNo: number): string => `c${componentNo}`
export const wholeList = (listNo: number): string => `l${listNo}`

export function readCountsItem(item: string): { componentNo: number } | { listNo: number } {
  if (item.startsWith('c')) return { componentNo: Number(item.slice(1)) }
  return { listNo: Number(item.startsWith('l') ? item.slice(1) : item) }
}
