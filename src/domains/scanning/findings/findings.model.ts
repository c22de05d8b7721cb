import type { AffectedPackage } from '../records/records.model.ts'

// The numbers are stored in the database and must not change.
/** `unknown`: the versions could not be compared. Code must never treat this state as unaffected. */
export const findingStates = { vulnerable: 1, unknown: 2 } as const

/** Stored advisory entry on one package. */
export type AffectedRow = Pick<
  AffectedPackage,
  'ecosystem' | 'name' | 'ranges' | 'versions' | 'state' | 'qualifiers'
> & {
  affectedNo: number
  recordNo: number
  organization: string
  severity: number
}

/** A finding that is open now. */
export type OpenFinding = {
  findingNo: number
  componentNo: number
  affectedNo: number
  organization: string
  state: number
  severity: number
}

/** Approximate size in bytes of a stored finding with its index entries. */
export const bytesOfFinding = 200

export type NewFinding = {
  componentNo: number
  affectedNo: number
  organization: string
  state: number
  severity: number
}

/** Limit on the findings in one package from an organization's own advisories. */
export const mostOwn = 1000

/**
 * Applies the limit `mostOwn`. Keeps all shared findings, and each organization's findings in a package with the lowest entry
 * numbers. `before` has the numbers of findings from earlier slices.
 */
export function limitOwnFindings(
  found: readonly NewFinding[],
  before: readonly { componentNo: number; organization: string; total: number }[],
): NewFinding[] {
  const keyOf = ({ componentNo, organization }: { componentNo: number; organization: string }) =>
    `${componentNo} ${organization}`
  const totals = new Map(before.map((one) => [keyOf(one), one.total]))
  return found
    .toSorted((one, other) => one.affectedNo - other.affectedNo)
    .filter((one) => {
      if (one.organization === '') return true
      const total = (totals.get(keyOf(one)) ?? 0) + 1
      totals.set(keyOf(one), total)
      return total <= mostOwn
    })
}
