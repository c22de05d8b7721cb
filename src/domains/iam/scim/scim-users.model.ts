import { kindOf } from '#lib/events/event-body.ts'

/** What a provider says of a person, as JSON; what of it means something to us has members of its own below. */
export type ScimResource = Readonly<Record<string, unknown>>

export type ScimInput = {
  userName: string
  /** Empty for none. */
  externalId: string
  active: boolean
  resource: ScimResource
}

/** A person whom an identity provider has provisioned. */
export type ScimUser = ScimInput & {
  /** A UUID. */
  id: string
  provider: string
  createTime: string
  updateTime: string
}

/** Each condition must hold; user names without regard to case. */
export type ScimFilter = { userName?: string; externalId?: string; id?: string }

export const scimUserType = 'iam.pinfold.dev/ScimUser'

/** People of one provider, those included who were deprovisioned and stay closed out. */
export const maxScimUsers = 50_000

export const aScimUser = kindOf<ScimUser>('scimUser')

/** As user names are told apart (RFC 7643, 4.1.1: without regard to case). */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase()
}
