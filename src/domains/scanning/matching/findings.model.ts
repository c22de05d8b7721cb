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

export type NewFinding = { componentNo: number; affectedNo: number; place: string; state: number; severity: number }
