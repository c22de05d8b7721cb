// External scanners with the pluggable scanner API of Harbor.
import { isAtOrBelow } from '#lib/uid.ts'

/** A scanner that the operator has configured. */
export type Scanner = {
  id: number
  name: string
  /** Base URL of its API, without `/api/v1`. */
  url: string
  hasCredential: boolean
  /** Groups with the images that it scans. Empty for all groups. */
  groups: string[]
  /** URL at which it reaches this registry. Empty for the URL that clients use. */
  registryUrl: string
  /** True if it scans every pushed image. */
  onPush: boolean
  /** Name and version from its metadata. Empty before the first request. */
  title: string
  consumes: string[]
  /** Type of the requested report. */
  produces: string
  /** Build time of its vulnerability database. Empty if its metadata has none. */
  buildTime: string
  /** Time of the last request for its metadata. */
  askTime: string
  /** Reason why the last request failed. Empty if it succeeded. */
  problem: string
  createTime: string
  updateTime: string
}

/** Settings of a scanner. An undefined `credential` stays unchanged. */
export type ScannerInput = Pick<Scanner, 'name' | 'url' | 'groups' | 'registryUrl' | 'onPush'> & {
  credential: string | undefined
}

/** An image to be scanned. `remote` is the scanner's ID of the scan after its start. */
export type ScanJob = {
  id: number
  repo: number
  organization: string
  digest: string
  mediaType: string
  actor: string
  requestTime: string
  remote: string
  beginTime: string
  attempts: number
  problem: string
}

export type ScanRequest = Pick<ScanJob, 'digest' | 'requestTime' | 'beginTime' | 'attempts' | 'problem'> & {
  scanner: string
}

export const mostScanners = 20
export const mostGroups = 100
/** Limit on the queued images of one organization for one scanner. */
export const mostJobs = 10_000
/** Limit on the concurrent scans of one organization at a scanner, so that others have capacity. */
export const mostBegun = 5

/** True if the scanner scans images of the repository. */
export const isFor = ({ groups }: Pick<Scanner, 'groups'>, repo: { uid: string }): boolean =>
  groups.length === 0 || groups.some((group) => isAtOrBelow(repo.uid, group))

/** Report types in order of preference. The last one has a format that only the scanner defines. */
export const reportTypesAsked: readonly string[] = [
  'application/vnd.security.vulnerability.report; version=1.1',
  'application/vnd.scanner.adapter.vuln.report.harbor+json; version=1.0',
  'application/vnd.scanner.adapter.vuln.report.raw',
]
