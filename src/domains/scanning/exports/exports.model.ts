// Findings of one image in a form that is independent of the export format.

import type { Gap } from '../image-findings/reports.model.ts'
import type { RecordSeverity } from '../records/records.model.ts'
import type { ResultCoverage } from '../reports/result-coverage.model.ts'

/** Export formats with their media types. */
export const exportFormats = {
  cyclonedx: 'application/vnd.cyclonedx+json; version=1.6',
  openvex: 'application/json',
  sarif: 'application/sarif+json',
} as const
export type ExportFormat = keyof typeof exportFormats

/**
 * `affected`: the package has the vulnerability. `accepted`: a member accepted the risk. `suppressed`: the distribution says that
 * its package is not affected. `uncertain`: the versions cannot be compared.
 */
export type StatedStatus = 'affected' | 'uncertain' | 'accepted' | 'suppressed'

/** One vulnerability with one status in some packages. */
export type Statement = {
  vulnerability: string
  aliases: string[]
  summary: string
  /** Severity number of version 1 of the API. */
  severity: number
  cvss: RecordSeverity[]
  references: string[]
  records: { source: string; id: string }[]
  status: StatedStatus
  /** Reason for the status. Empty for `affected`. */
  note: string
  fixes: string[]
  /** Time at which the vulnerability was first found in one of the packages. */
  since: string
  packages: { purl: string; name: string; version: string; locations: string[] }[]
}

/** Content of an export document. The image has a package URL and the path for pulls. */
export type StatedImage = {
  digest: string
  path: string
  purl: string
  /** Author of the document, which is the URL of the server. */
  author: string
  time: string
  tool: { name: string; version: string }
  /** Statements by descending severity; statements of the same severity by their vulnerability IDs. */
  statements: Statement[]
  /** Coverage gaps of the image. Each export format must show them to its readers. */
  gaps: Gap[]
  coverage: ResultCoverage
}

/** A coverage gap in one line. */
export const gapText = ({ reason, subject, message }: Gap): string =>
  [reason, subject, message].filter((part) => part !== '').join(' ')

/** Recommended action for `affected`. For any other status, the note on the status. */
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
