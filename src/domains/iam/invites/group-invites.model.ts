import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** An offer to join a group with a role. It never changes; a code that only its creator has seen redeems it. */
export type GroupInvite = {
  /** Its parent is the group that people join. */
  uid: string
  roleUid: string
  /** Only a person whose verified address is this one may redeem it; anybody when empty. */
  email: string
  expirationTime: string
  singleUse: boolean
  /** The id of the key that verifies the code. */
  keyId: string
  /** Whoever made it, and must be allowed to until it is redeemed; empty for the operator, and where it was not recorded. */
  createdBy: string
  createTime: string
}

/** An invite with the role in full; none when it was deleted after the invite had expired. */
export type HydratedInvite = GroupInvite & {
  role: { uid: string; name: string; description: string; capabilities: number[] } | undefined
}

export const anInvite = kindOf<GroupInvite>('invite')

export const groupInviteType = 'iam.pinfold.dev/GroupInvite'

export const groupInviteFields = {
  uid: { column: 'uid', sort: true },
  roleUid: { column: 'role_uid', required: true },
  // The longest address that mail can be sent to has 254 characters.
  email: { column: 'email', pattern: /^(?:[^\s@]+@[^\s@]+)?$/, maxLength: 254 },
  createTime: { column: 'create_time', sort: true },
  // It never changes, so both times are one.
  updateTime: { column: 'create_time', sort: true },
} as const satisfies Fields<GroupInvite & { updateTime: string }>

/** How long an invite may live, in milliseconds. */
export const maxInviteLife = 30 * 24 * 60 * 60 * 1000

/** Mail providers do not tell cases apart. Only ASCII is folded, since other letters can fold into ASCII ones. */
export function sameAddress(a: string, b: string): boolean {
  const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return folded(a) === folded(b)
}
