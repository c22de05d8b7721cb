import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Invitation to join a group with a role. Invitations are never updated. Only the creator gets the code, which is not stored. */
export type GroupInvite = {
  /** Uid, below the uid of the group to join. */
  uid: string
  roleUid: string
  /** Email address that a person must have verified to accept the invitation. Empty if any person can accept it. */
  email: string
  expirationTime: string
  singleUse: boolean
  /** ID of the key that verifies the code. */
  keyId: string
  /**
   * Uid of the creator. The invitation is valid only while the creator is allowed to invite. Empty for the operator, or if
   * unknown.
   */
  createdBy: string
  createTime: string
}

/** Invitation with its role. The role is undefined if it was deleted after the invitation had expired. */
export type HydratedInvite = GroupInvite & {
  role: { uid: string; name: string; description: string; capabilities: number[] } | undefined
}

export const toInviteResource = kindOf<GroupInvite>('invite')

export const groupInviteType = 'iam.pinfold.dev/GroupInvite'

export const groupInviteFields = {
  uid: { column: 'uid', sort: true },
  roleUid: { column: 'role_uid', required: true },
  // Email addresses can have at most 254 characters.
  email: { column: 'email', pattern: /^(?:[^\s@]+@[^\s@]+)?$/, maxLength: 254 },
  createTime: { column: 'create_time', sort: true },
  // Invitations are never updated, so the update time is the creation time.
  updateTime: { column: 'create_time', sort: true },
} as const satisfies Fields<GroupInvite & { updateTime: string }>

/** Longest time until an invitation expires, in milliseconds. */
export const maxInviteLife = 30 * 24 * 60 * 60 * 1000

/**
 * Compares email addresses like mail providers: upper and lower case are the same. Only ASCII letters are lowercased, since some
 * other letters would become ASCII letters.
 */
export function sameAddress(a: string, b: string): boolean {
  const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return folded(a) === folded(b)
}
