import type { Fields } from '#lib/fields.ts'
import type { Severity } from '../metadata/vulnerabilities.model.ts'

/** What the updates of some images resolved on one day. */
export type ResolvedReport = { date: string; resolved: ResolvedVulnerability[] }

export type ResolvedVulnerability = { id: string; aliases: string[]; severities: Severity[] }

/** The report with its members named as in the contract. */
export function shownReport({ date, resolved }: ResolvedReport) {
  return { date, resolvedVulns: resolved.map(({ severities, ...one }) => ({ ...one, cvssSeverities: severities })) }
}

/** Sorting reads this table. */
export const reportFields = { date: { column: 'date', sort: true } } as const satisfies Fields<ResolvedReport>

/** `repo` is a uid or a path in the registry. */
export type ImageRef = { repo: string; tags: readonly string[] }

export const defaultTag = 'latest'
/** How many tags one report follows. */
export const maxTags = 100
/** How many moves of these tags one page looks at. */
export const maxMoves = 2000
/** How much the lists of packages may hold that one page compares; each move reads one. */
export const reportWalk = { steps: maxMoves + maxTags, bytes: 128 * 1024 * 1024 }
export const maxRangeMs = 366 * 86_400_000
/** How many days that may be, of which the first and the last are perhaps in part. */
export const maxDays = 367
/** How far back to look for an image of which it is known what it contains. */
export const movesBack = 100
export const dayMs = 86_400_000
