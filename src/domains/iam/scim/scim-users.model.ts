import { createHash } from 'node:crypto'
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

export const scimUserType = 'iam.pinfold.dev/ScimUser'

/** People of one provider, those included who were deprovisioned and stay closed out. */
export const maxScimUsers = 50_000

export const aScimUser = kindOf<ScimUser>('scimUser')

/** An address of a person, as filters compare it. */
export type ScimEmail = { value: string; type: string; isPrimary: boolean }

/** The addresses in a resource. Values of other shapes are left out. */
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

/** Some providers send texts. */
const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === 'string' && value.toLowerCase() === 'true')

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** The version of a person, which changes with each write. */
export function versionOf({ updateTime, resource }: Pick<ScimUser, 'updateTime' | 'resource'>): string {
  const hash = createHash('sha256')
    .update(`${updateTime} ${JSON.stringify(resource)}`)
    .digest('base64url')
  return `W/"${hash.slice(0, 22)}"`
}

/** As user names are told apart (RFC 7643, 4.1.1: without regard to case). */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase()
}
