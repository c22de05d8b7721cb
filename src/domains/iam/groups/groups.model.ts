import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'

/** An organisation (a root) or a folder. Its uid starts with the uid of the group above it. */
export type Group = {
  uid: string
  name: string
  description: string
  /** Staff only, roots only: the name is a domain that the organisation has proven. */
  verified: boolean
  /** The contract's OrgKind; folders report their root's. */
  kind: number
  /** The contract's OrgStatus; folders report their root's. */
  status: number
  /** How many of what the organisation may have, by key: `repositories`, `idps`. */
  resourceLimits: Record<string, number>
  createTime: string
  updateTime: string
}

export const aGroup = kindOf<Group>('group')

export const groupType = 'iam.pinfold.dev/Group'

export const groupFields = {
  ...namedFields,
  verified: { column: 'verified', update: true },
  kind: { column: 'kind', update: true },
} as const satisfies Fields<Group>

/** OrgStatus READY. */
export const ready = 2
/** How many levels of groups there may be, the organisation included. */
export const maxGroupDepth = 10
/** A verified name is a domain. */
export const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/

/** Bytes are no number of things, and may be more than the contract has room for; 0 stands for no limit. */
export function shownLimits({ resourceLimits }: Group): Record<string, number> {
  return Object.fromEntries(Object.entries(resourceLimits).filter(([name, limit]) => name !== 'bytes' && limit > 0))
}

/** What somebody who does not belong to an organisation, but has an address of its domain, may know of it. */
export function strangersView(group: Group): Group {
  return { ...group, description: '', resourceLimits: {} }
}
