import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** An offer to join a group with a role. It never changes. Only its creator has seen the code that redeems it. */
export type GroupInvite = {
  /** Its parent is the group of the invite. */
  uid: string
  roleUid: string
  /** Verified address of the only person who can redeem the invite. Empty if anyone can. */
  email: string
  expirationTime: string
  singleUse: boolean
  /** ID of the key that verifies the code. */
  keyId: string
  /**
   * Uid of the creator, who must stay permitted to invite until the invite is redeemed. Empty for the operator, and if it was not
   * recorded.
   */
  createdBy: string
  createTime: string
}

/** An invite with its role. Undefined if the role was deleted after the invite had expired. */
export type HydratedInvite = GroupInvite & {
  role: { uid: string; name: string; description: string; capabilities: number[] } | undefined
}

export const toInviteResource = kindOf<GroupInvite>('invite')

export const groupInviteType = 'iam.pinfold.dev/GroupInvite'

export const groupInviteFields = {
  uid: { column: 'uid', sort: true },
  roleUid: { column: 'role_uid', required: true },
  // Longest address that mail can be sent to: 254 characters.
  email: { column: 'email', pattern: /^(?:[^\s@]+@[^\s@]+)?$/, maxLength: 254 },
  createTime: { column: 'create_time', sort: true },
  // An invite never changes, so both times are the same.
  updateTime: { column: 'create_time', sort: true },
} as const satisfies Fields<GroupInvite & { updateTime: string }>

/** Longest life of an invite, in milliseconds. */
export const maxInviteLife = 30 * 24 * 60 * 60 * 1000

/**
 * Compares addresses as mail providers do, without regard to case. Folds only ASCII, since other letters can fold into ASCII
 * ones.
 */
export function sameAddress(a: string, b: string): boolean {
  const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return folded(a) === folded(b)
}
