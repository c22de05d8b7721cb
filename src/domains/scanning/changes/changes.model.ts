import { kindOf } from '#lib/events/event-body.ts'

// The numbers are stored in the database and must not change.
export const changeKinds = { found: 1, resolved: 2 } as const
export type ChangeKind = keyof typeof changeKinds

/** A vulnerability that was found in some packages, or that some packages no longer have. */
export type Change = {
  changeNo: number
  vulnerability: string
  /** The organization whose own advisory names the vulnerability. Empty if a shared data source names the vulnerability. */
  organization: string
  kind: ChangeKind
  lastRepo: number
  changeTime: string
}

/** Content of the event for one repository. */
export type AnnouncedChange = {
  repository: string
  repoId: string
  vulnerability: string
  severity: string
  tags: { tag: string; digest: string }[]
  moreTags: boolean
  purls: string[]
}

export const toFoundVulnerabilityResource = kindOf<AnnouncedChange>('found-vulnerability')
export const toResolvedVulnerabilityResource = kindOf<AnnouncedChange>('resolved-vulnerability')
