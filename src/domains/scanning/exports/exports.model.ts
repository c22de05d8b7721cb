// Findings of one image in the form that all export formats are written from.

import type { Gap } from '../image-findings/reports.model.ts'
import type { RecordSeverity } from '../records/records.model.ts'
import type { ResultCoverage } from '../reports/result-coverage.model.ts'

/** The formats, each with its media type. */
export const exportFormats = {
  cyclonedx: 'application/vnd.cyclonedx+json; version=1.6',
  openvex: 'application/json',
  sarif: 'application/sarif+json',
} as const
export type ExportFormat = keyof typeof exportFormats

/**
 * `affected`: the finding counts. `accepted`: a member accepted the risk, so it does not count. `suppressed`: the distribution
 * says that its package is not affected. `uncertain`: the versions cannot be compared.
 */
export type StatedStatus = 'affected' | 'uncertain' | 'accepted' | 'suppressed'

/** Common status of one vulnerability in some packages. */
export type Statement = {
  vulnerability: string
  aliases: string[]
  summary: string
  /** As numbered in version 1 of the API. */
  severity: number
  cvss: RecordSeverity[]
  references: string[]
  records: { source: string; id: string }[]
  status: StatedStatus
  /** Reason for another status than `affected`. Empty otherwise. */
  note: string
  fixes: string[]
  /** Time at which it was first found in one of the packages. */
  since: string
  packages: { purl: string; name: string; version: string; locations: string[] }[]
}

/** Content of a document. The image is named by a package URL, and by the path that it is pulled from. */
export type StatedImage = {
  digest: string
  path: string
  purl: string
  /** Author of the document: the address of the server. */
  author: string
  time: string
  tool: { name: string; version: string }
  /** Sorted by vulnerability. */
  statements: Statement[]
  /** Coverage gaps, which each format must show to its readers. */
  gaps: Gap[]
  coverage: ResultCoverage
}

/** A coverage gap in one line. */
export const gapText = ({ reason, subject, message }: Gap): string =>
  [reason, subject, message].filter((part) => part !== '').join(' ')

/** Recommended action, or the note of another status than `affected`. */
export function actionOf({ status, note, fixes, packages }: Statement): string {
  if (status !== 'affected') return note
  const names = [...new Set(packages.map(({ name }) => name))].slice(0, 20).join(', ')
  return fixes.length > 0 ? `Update ${names} to ${fixes.join(' or ')}.` : `No fixed version of ${names} is known.`
}

/** Algorithm and hexadecimal digits of a digest. */
export function hashOf(digest: string): { algorithm: string; digits: string } {
  const [algorithm = '', digits = ''] = digest.split(':')
  return { algorithm, digits }
}
