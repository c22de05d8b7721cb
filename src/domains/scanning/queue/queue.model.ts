// The numbers are stored in the database and must not change.
/**
 * Kinds of queued work. `package`: a package with changed advisories. `advisory`: a changed advisory of our own. `list`: a new
 * package list. `counts`: changed counts of findings in lists. `backfill`: package lists of earlier releases.
 */
export const matchKinds = { package: 1, advisory: 2, list: 3, counts: 4, backfill: 5 } as const
export type MatchKind = keyof typeof matchKinds

/** `organization` is the one that the work is for, and is empty for shared data. Organizations take turns. */
export type MatchItem = { kind: MatchKind; organization: string; item: string }

/** `progress` is the state of an interrupted item. Empty for an item that was not started. */
export type DueMatch = MatchItem & { progress: string; dueTime: string; attempts: number; owner: string; fence: number }

/** Queue item of the kind `package`. */
export const packageItem = (ecosystem: string, name: string): string => `${ecosystem}\n${name}`

export function readPackageItem(item: string): { ecosystem: string; name: string } {
  const end = item.indexOf('\n')
  return { ecosystem: item.slice(0, end), name: item.slice(end + 1) }
}

/**
 * Queue items of the kind `counts`. `c`: a package whose number of findings has changed; the change is to be added to the counts of
 * all lists with the package. `l`: one list that is counted completely. Earlier releases store a bare number for a list, so they never confuse it with these forms.
 */
export const changedPackage = (componentNo: number): string => `c${componentNo}`
export const wholeList = (listNo: number): string => `l${listNo}`

export function readCountsItem(item: string): { componentNo: number } | { listNo: number } {
  if (item.startsWith('c')) return { componentNo: Number(item.slice(1)) }
  return { listNo: Number(item.startsWith('l') ? item.slice(1) : item) }
}
