// What is said of the vulnerabilities of one image, as documents of others say it.

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
 * `affected`: it counts. `accepted`: it counts no more, since somebody lives with it. `suppressed`: the distribution says that
 * its package does not have it. `uncertain`: the versions cannot be compared.
 */
export type StatedStatus = 'affected' | 'uncertain' | 'accepted' | 'suppressed'

/** What is the same of one vulnerability in some packages. */
export type Statement = {
  vulnerability: string
  aliases: string[]
  summary: string
  /** As version 1 counts severities. */
  severity: number
  cvss: RecordSeverity[]
  references: string[]
  records: { source: string; id: string }[]
  status: StatedStatus
  /** Why it is not simply affected; empty otherwise. */
  note: string
  fixes: string[]
  /** When it was found first in one of the packages. */
  since: string
  packages: { purl: string; name: string; version: string; locations: string[] }[]
}

/** All that a document says. The image is named by a package URL, and by the path that it is pulled from. */
export type StatedImage = {
  digest: string
  path: string
  purl: string
  /** Who says so: the address of the server. */
  author: string
  time: string
  tool: { name: string; version: string }
  /** By vulnerability. */
  statements: Statement[]
  /** Where nothing can be said. Whoever reads the document has to see them. */
  gaps: Gap[]
  coverage: ResultCoverage
}

/** A gap in one line. */
export const gapText = ({ reason, subject, message }: Gap): string =>
  [reason, subject, message].filter((part) => part !== '').join(' ')

/** What is to be done about it. */
export function actionOf({ status, note, fixes, packages }: Statement): string {
  if (status !== 'affected') return note
  const names = [...new Set(packages.map(({ name }) => name))].slice(0, 20).join(', ')
  return fixes.length > 0 ? `Update ${names} to ${fixes.join(' or ')}.` : `No version of ${names} is known to be fixed.`
}

/** The digest in the words of a hash: its algorithm, and its digits. */
export function hashOf(digest: string): { algorithm: string; digits: string } {
  const [algorithm = '', digits = ''] = digest.split(':')
  return { algorithm, digits }
}
