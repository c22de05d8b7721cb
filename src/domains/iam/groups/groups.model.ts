import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'

/** Organization or folder. The uid of a folder begins with the uid of its parent. */
export type Group = {
  uid: string
  name: string
  description: string
  /**
   * True if the name is a domain that the organization has proven to own. Only organizations can be verified, and only by the
   * operator.
   */
  verified: boolean
  /** Number of an OrgKind in the contract. Folders have the kind of their organization. */
  kind: number
  /** Number of an OrgStatus in the contract. Folders have the status of their organization. */
  status: number
  /** Limits that were set for the organization, by key: `repositories`, `idps`. */
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

/** Number of `READY` in OrgStatus of the contract. */
export const ready = 2
/** Most levels of groups, including the organization. */
export const maxGroupDepth = 10
/** Pattern of domain names. The name of a verified organization is a domain. */
export const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/

/**
 * Limits in the message of a group. The limit of bytes is left out, since it may exceed an int32. A limit of 0 is left out, since
 * it means no limit.
 */
export function shownLimits({ resourceLimits }: Group): Record<string, number> {
  return Object.fromEntries(Object.entries(resourceLimits).filter(([name, limit]) => name !== 'bytes' && limit > 0))
}

/** Group as shown to a person who is not a member but has an email address of its domain. Description and limits are left out. */
export function toPublicGroup(group: Group): Group {
  return { ...group, description: '', resourceLimits: {} }
}
