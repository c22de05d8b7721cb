// Scanners elsewhere, which speak the pluggable scanner API of Harbor.
import { isAtOrBelow } from '#lib/uid.ts'

/** A scanner that the operator lets look at images. */
export type Scanner = {
  id: number
  name: string
  /** Where its API is, without `/api/v1`. */
  url: string
  hasCredential: boolean
  /** At and below which groups; none for everywhere. */
  groups: string[]
  /** Where it reaches this registry; empty for where clients do. */
  registryUrl: string
  /** Whether it looks at every image that is pushed. */
  onPush: boolean
  /** What it says of itself; empty before it was asked. */
  title: string
  consumes: string[]
  /** The type of report that it is asked for. */
  produces: string
  /** When what it knows of vulnerabilities was built; empty where it does not say. */
  buildTime: string
  /** When it last said so. */
  askTime: string
  /** Why it could not be asked; empty when it could. */
  problem: string
  createTime: string
  updateTime: string
}

/** What the operator says of one. `credential` is undefined where it stays as it is. */
export type ScannerInput = Pick<Scanner, 'name' | 'url' | 'groups' | 'registryUrl' | 'onPush'> & {
  credential: string | undefined
}

/** An image that a scanner is to look at. `remote`: what the scanner calls the scan, once it has begun. */
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
/** How many images of one organisation wait for one scanner. */
export const mostJobs = 10_000
/** How many scans of one organisation a scanner has begun at once, so that others find it free. */
export const mostBegun = 5

/** Whether the scanner is to look at what is in the repo. */
export const isFor = ({ groups }: Pick<Scanner, 'groups'>, repo: { uid: string }): boolean =>
  groups.length === 0 || groups.some((group) => isAtOrBelow(repo.uid, group))

/** From the one that says most to the one of which only the scanner knows what it is. */
export const reportTypesAsked: readonly string[] = [
  'application/vnd.security.vulnerability.report; version=1.1',
  'application/vnd.scanner.adapter.vuln.report.harbor+json; version=1.0',
  'application/vnd.scanner.adapter.vuln.report.raw',
]
