// A person as SCIM writes them (RFC 7643, 4.1). The provider's words are kept and said again, whatever they are; three of
// them mean something: userName, externalId and active.
import { endpointOf } from '#domains/iam/scim/scim-settings.model.ts'
import type { ScimInput, ScimResource, ScimUser } from '#domains/iam/scim/scim-users.model.ts'
import { ScimError, wrong } from './errors.ts'

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User'

/** The longest text of an attribute that means something, and the largest resource, in characters of JSON. */
const maxText = 512
export const maxResource = 16 * 1024
/** How deep values nest, and how many of them there are, those within others included. */
const maxDepth = 8
const maxParts = 2000

/** Attributes that the server writes, or that nobody may read: what is sent for them is passed over. */
const passedOver: readonly string[] = ['id', 'meta', 'password', 'groups']

export type Json = Record<string, unknown>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The member of this name, which SCIM spells without regard to case (RFC 7643, 2.1). */
export function keyOf(object: Json, name: string): string | undefined {
  if (Object.hasOwn(object, name)) return name
  const lower = name.toLowerCase()
  return Object.keys(object).find((key) => key.toLowerCase() === lower)
}

/** Whether an attribute is one of those that are passed over. */
export function isPassedOver(name: string): boolean {
  return passedOver.includes(name.toLowerCase())
}

/** What a whole resource says, checked. `active` is true where nothing is said of it. */
export function readResource(given: unknown): ScimInput {
  if (!isObject(given)) throw wrong('invalidSyntax', 'the body must be a JSON object')
  checkParts(given)
  // null means that there is no value (RFC 7643, 2.5).
  const said = Object.entries(given).filter(([name, value]) => !isPassedOver(name) && value !== null)
  const resource: Json = Object.fromEntries(
    said.map(([name, value]) => [spelling.get(name.toLowerCase()) ?? name, value]),
  )
  const input = {
    userName: textOf(resource, 'userName'),
    externalId: textOf(resource, 'externalId'),
    active: 'active' in resource ? readActive(resource.active) : true,
  }
  if (input.userName === '') throw wrong('invalidValue', 'userName: is required')
  const checked = { ...resource, active: input.active }
  if (JSON.stringify(checked).length > maxResource) {
    throw new ScimError(413, `a resource must be at most ${maxResource} characters long`)
  }
  return { ...input, resource: checked }
}

const spelling = new Map(['userName', 'externalId', 'active', 'schemas'].map((name) => [name.toLowerCase(), name]))

/** One provider sends texts such as "False". */
export function readActive(value: unknown): boolean {
  if (typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  if (text !== 'true' && text !== 'false') throw wrong('invalidValue', 'active: must be true or false')
  return text === 'true'
}

function textOf(resource: Json, name: string): string {
  const value = resource[name] ?? ''
  if (typeof value !== 'string') throw wrong('invalidValue', `${name}: must be a text`)
  if (value.length > maxText) throw wrong('invalidValue', `${name}: must be at most ${maxText} characters long`)
  if (!value.isWellFormed() || /\p{Cc}/u.test(value)) throw wrong('invalidValue', `${name}: holds control characters`)
  return value
}

/** Throws where a value has more parts, or nests deeper, than anything about a person does; before anything is done with it. */
export function checkParts(value: unknown): void {
  let parts = 0
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth + 1) throw wrong('invalidValue', `values nest at most ${maxDepth} levels deep`)
    const next: unknown[] = []
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue
      const members = Object.values(one)
      parts += members.length
      if (parts > maxParts) throw wrong('tooMany', `a request holds at most ${maxParts} values`)
      for (const member of members) next.push(member)
    }
    level = next
  }
}

/** The person as the provider gets to see them again. */
export function resourceOf({ id, provider, resource, createTime, updateTime }: ScimUser, url: string): ScimResource {
  const schemas = Array.isArray(resource.schemas) ? resource.schemas : [userSchema]
  return {
    ...resource,
    schemas,
    id,
    meta: {
      resourceType: 'User',
      created: createTime,
      lastModified: updateTime,
      location: `${endpointOf(url, provider)}/Users/${id}`,
    },
  }
}
