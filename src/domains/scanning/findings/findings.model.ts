import type { AffectedPackage } from '../records/records.model.ts'

// The numbers are stored; they keep their meaning for good.
/** `unknown`: the versions could not be compared. Nobody may take that for unaffected. */
export const findingStates = { vulnerable: 1, unknown: 2 } as const

/** What is said of a package, as it is stored. */
export type AffectedRow = Pick<
  AffectedPackage,
  'ecosystem' | 'name' | 'ranges' | 'versions' | 'state' | 'qualifiers'
> & {
  affectedNo: number
  recordNo: number
  place: string
  severity: number
}

/** A finding that holds now. */
export type OpenFinding = {
  findingNo: number
  componentNo: number
  affectedNo: number
  place: string
  state: number
  severity: number
}

/** What one takes with its indexes, about. */
export const bytesOfFinding = 200

export type NewFinding = { componentNo: number; affectedNo: number; place: string; state: number; severity: number }

/** How much of what an organisation's own advisories say is kept of one package. */
export const mostOwn = 1000

/**
 * What is kept of findings: all that count for everybody, and of each organisation as many in each package as are kept, by the
 * numbers of what is said. `before` is how many there are already of what comes before.
 */
export function keptOf(
  found: readonly NewFinding[],
  before: readonly { componentNo: number; place: string; total: number }[],
): NewFinding[] {
  const keyOf = ({ componentNo, place }: { componentNo: number; place: string }) => `${componentNo} ${place}`
  const totals = new Map(before.map((one) => [keyOf(one), one.total]))
  return found
    .toSorted((one, other) => one.affectedNo - other.affectedNo)
    .filter((one) => {
      if (one.place === '') return true
      const total = (totals.get(keyOf(one)) ?? 0) + 1
      totals.set(keyOf(one), total)
      return total <= mostOwn
    })
}
