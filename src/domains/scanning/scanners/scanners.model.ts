// External scanners with Harbor's pluggable scanner API.
import { isAtOrBelow } from '#lib/uid.ts'

/** A scanner that the operator has configured. */
export type Scanner = {
  id: number
  name: string
  /** Base URL of the scanner's API, without `/api/v1`. */
  url: string
  hasCredential: boolean
  /** The scanner scans only images in these groups. Empty for all groups. */
  groups: string[]
  /** URL at which the scanner reaches this registry. Empty for the URL that clients use. */
  registryUrl: string
  /** True if the scanner scans every pushed image. */
  onPush: boolean
  /** Name and version from the scanner's metadata. Empty before the first request. */
  title: string
  consumes: string[]
  /** Media type of the requested report. */
  produces: string
  /** Build time of the scanner's vulnerability database. Empty if the scanner's metadata has no such time. */
  buildTime: string
  /** Time of the last request for the scanner's metadata. */
  askTime: string
  /** Reason why the last request failed. Empty if the request succeeded. */
  problem: string
  createTime: string
  updateTime: string
}

/** Settings of a scanner. If `credential` is undefined, the credential stays unchanged. */
export type ScannerInput = Pick<Scanner, 'name' | 'url' | 'groups' | 'registryUrl' | 'onPush'> & {
  credential: string | undefined
}

/** An image to be scanned. `remote` is the ID that the scanner gave the scan, or empty before the scan has started. */
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
/** Limit on the concurrent scans of one organization at a scanner. The limit leaves capacity for other organizations. */
export const mostBegun = 5

/** True if the scanner scans images of the repository. */
export const isFor = ({ groups }: Pick<Scanner, 'groups'>, repo: { uid: string }): boolean =>
  groups.length === 0 || groups.some((group) => isAtOrBelow(repo.uid, group))

/** Report types in order of preference. The format of the last type differs between scanners. */
export const reportTypesAsked: readonly string[] = [
  'application/vnd.security.vulnerability.report; version=1.1',
  'application/vnd.scanner.adapter.vuln.report.harbor+json; version=1.0',
  'application/vnd.scanner.adapter.vuln.report.raw',
]
