import type { Fields } from '#lib/fields.ts'
import type { Severity } from '../metadata/vulnerabilities.model.ts'

/** Vulnerabilities that tag updates of some images resolved on one day. */
export type ResolvedReport = { date: string; resolved: ResolvedVulnerability[] }

export type ResolvedVulnerability = { id: string; aliases: string[]; severities: Severity[] }

/** The report with the field names of the API. */
export function shownReport({ date, resolved }: ResolvedReport) {
  return { date, resolvedVulns: resolved.map(({ severities, ...one }) => ({ ...one, cvssSeverities: severities })) }
}

/** Fields of a report, for sorting. */
export const reportFields = { date: { column: 'date', sort: true } } as const satisfies Fields<ResolvedReport>

/** `repo` is a uid or a path in the registry. */
export type ImageRef = { repo: string; tags: readonly string[] }

export const defaultTag = 'latest'
/** Limit on the tags of one report. */
export const maxTags = 100
/** Limit on the tag updates that one page reads. */
export const maxMoves = 2000
/**
 * Limits on the package lists that one page compares. `steps` limits their number, with one list for each tag update and one for
 * each tag. `bytes` limits their size.
 */
export const reportWalk = { steps: maxMoves + maxTags, bytes: 128 * 1024 * 1024 }
export const maxRangeMs = 366 * 86_400_000
/** Limit on the days of a range. The first and the last day can be partial. */
export const maxDays = 367
/** Limit on the tag updates before a range that are searched for an image whose contents are known. */
export const maxEarlierMoves = 100
export const dayMs = 86_400_000
