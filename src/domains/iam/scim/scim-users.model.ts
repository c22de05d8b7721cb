import { createHash } from 'node:crypto'
import { kindOf } from '#lib/events/event-body.ts'

/** SCIM resource of a person as sent by the provider. Attributes that affect this server are also stored separately. */
export type ScimResource = Readonly<Record<string, unknown>>

export type ScimInput = {
  userName: string
  /** External ID. Empty for none. */
  externalId: string
  active: boolean
  resource: ScimResource
}

/** Person whom an identity provider has provisioned over SCIM. */
export type ScimUser = ScimInput & {
  /** UUID of the person. */
  id: string
  provider: string
  createTime: string
  updateTime: string
}

export const scimUserType = 'iam.pinfold.dev/ScimUser'

/** Most people of one provider, including the blocked external IDs of deleted people. */
export const maxScimUsers = 50_000

export const toScimUserResource = kindOf<ScimUser>('scimUser')

/** Email address of a person, for filters. */
export type ScimEmail = { value: string; type: string; isPrimary: boolean }

/** Email addresses in a SCIM resource. Values without a text are left out. */
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

/** True for the boolean and for the text "true", which some providers send. */
const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === 'string' && value.toLowerCase() === 'true')

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** Version of a person, for entity tags. Changes with each write. */
export function versionOf({ updateTime, resource }: Pick<ScimUser, 'updateTime' | 'resource'>): string {
  const hash = createHash('sha256')
    .update(`${updateTime} ${JSON.stringify(resource)}`)
    .digest('base64url')
  return `W/"${hash.slice(0, 22)}"`
}

/** User name for comparisons. Upper and lower case are the same (RFC 7643, 4.1.1). */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase()
}
