import { kindOf } from '#lib/events/event-body.ts'

// The numbers are stored; they keep their meaning for good.
export const changeKinds = { found: 1, resolved: 2 } as const
export type ChangeKind = keyof typeof changeKinds

/** That a vulnerability was found in some packages, or is not any more. */
export type Change = {
  changeNo: number
  vulnerability: string
  /** Of an organisation's own advisories, the organisation; else empty. */
  place: string
  kind: ChangeKind
  lastRepo: number
  changeTime: string
}

/** What is told of it for one repo. */
export type ToldChange = {
  repository: string
  repoId: string
  vulnerability: string
  severity: string
  tags: { tag: string; digest: string }[]
  moreTags: boolean
  purls: string[]
}

export const aFoundVulnerability = kindOf<ToldChange>('found-vulnerability')
export const aResolvedVulnerability = kindOf<ToldChange>('resolved-vulnerability')
