import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'

/** An organization (a root) or a folder. Its uid starts with the uid of the group above it. */
export type Group = {
  uid: string
  name: string
  description: string
  /** Only for organizations, and set only by staff: the name is a domain that the organization has proven. */
  verified: boolean
  /** OrgKind of the contract. Folders have that of their organization. */
  kind: number
  /** OrgStatus of the contract. Folders have that of their organization. */
  status: number
  /** Limits of the organization, by key: `repositories`, `idps`. */
  resourceLimits: Record<string, number>
  createTime: string
  updateTime: string
}

export const toGroupResource = kindOf<Group>('group')

export const groupType = 'iam.pinfold.dev/Group'

export const groupFields = {
  ...namedFields,
  verified: { column: 'verified', update: true },
  kind: { column: 'kind', update: true },
} as const satisfies Fields<Group>

/** The value `READY` of the contract's OrgStatus. */
export const ready = 2
/** Most levels of groups, the organization included. */
export const maxGroupDepth = 10
/** A verified name is a domain. */
export const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/

/** Limits in the message of a group. Leaves out bytes, which may exceed an int32, and 0, which stands for no limit. */
export function shownLimits({ resourceLimits }: Group): Record<string, number> {
  return Object.fromEntries(Object.entries(resourceLimits).filter(([name, limit]) => name !== 'bytes' && limit > 0))
}

/** Group as shown to a person outside of the organization with an address of its domain: without description and limits. */
export function strangersView(group: Group): Group {
  return { ...group, description: '', resourceLimits: {} }
}
