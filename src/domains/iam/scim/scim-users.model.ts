import { createHash } from 'node:crypto'
import { kindOf } from '#lib/events/event-body.ts'

/** A person as sent by the provider, as JSON. Attributes that the server uses have their own members below. */
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

export const scimUserType = 'iam.pinfold.dev/ScimUser'

/** Most people of one provider, including deprovisioned people who stay blocked. */
export const maxScimUsers = 50_000

export const toScimUserResource = kindOf<ScimUser>('scimUser')

/** An address of a person, as used in filters. */
export type ScimEmail = { value: string; type: string; isPrimary: boolean }

/** Addresses in a resource. Leaves out values of other shapes. */
export function emailsOf(resource: ScimResource): ScimEmail[] {
  const key = Object.keys(resource).find((name) => name.toLowerCase() === 'emails')
  const list = key === undefined ? [] : [resource[key] ?? []].flat()
  return list.flatMap((one) => {
    const { value, type, primary } = (typeof one === 'object' && one !== null ? one : { value: one }) as ScimResource
    if (typeof value !== 'string' || !isStorable(value)) return []
    const typeText = typeof type === 'string' && isStorable(type) ? type : ''
    return [{ value: userNameKey(value), type: userNameKey(typeText), isPrimary: isTrue(primary) }]
  })
}

/** Accepts texts as well, since some providers send them. */
const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === 'string' && value.toLowerCase() === 'true')

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** Version of a person. Changes with each write. */
export function versionOf({ updateTime, resource }: Pick<ScimUser, 'updateTime' | 'resource'>): string {
  const hash = createHash('sha256')
    .update(`${updateTime} ${JSON.stringify(resource)}`)
    .digest('base64url')
  return `W/"${hash.slice(0, 22)}"`
}

/** Key of a user name, without regard to case (RFC 7643, 4.1.1). */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase()
}
