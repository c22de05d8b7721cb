// The filters that providers match people with: `eq`, joined by `and` (of RFC 7644, 3.4.2.2).
import type { ScimFilter } from '#domains/iam/scim/scim-users.model.ts'
import { wrong } from './errors.ts'
import { userSchema } from './names.ts'

const attributes: Readonly<Record<string, keyof ScimFilter>> = {
  username: 'userName',
  externalid: 'externalId',
  id: 'id',
}
const maxLength = 2048
const term = /^\s*([A-Za-z0-9:._-]+)\s+([A-Za-z]+)\s+("(?:[^"\\]|\\.)*")\s*(?:(and)\s+|$)/i

/** Throws `invalidFilter` for all that is not such a filter; nothing is matched by what contradicts itself. */
export function readFilter(text: string): ScimFilter | 'nobody' {
  if (text.length > maxLength) throw wrong('invalidFilter', `the filter must be at most ${maxLength} characters long`)
  const filter: ScimFilter = {}
  let rest = text
  let goesOn = true
  while (goesOn) {
    const [whole, path, operator, literal, and] = term.exec(rest) ?? []
    const name = path === undefined ? undefined : attributeOf(path)
    const value = literal === undefined ? undefined : textOf(literal)
    if (whole === undefined || name === undefined || value === undefined || operator?.toLowerCase() !== 'eq') {
      throw wrong(
        'invalidFilter',
        'filters are userName, externalId or id, eq, a text in quotes; several joined by and',
      )
    }
    if (filter[name] !== undefined && filter[name] !== value) return 'nobody'
    filter[name] = value
    rest = rest.slice(whole.length)
    goesOn = and !== undefined
  }
  return filter
}

function attributeOf(path: string): keyof ScimFilter | undefined {
  const lower = path.toLowerCase()
  const name = lower.startsWith(`${userSchema.toLowerCase()}:`) ? lower.slice(userSchema.length + 1) : lower
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined
}

function textOf(literal: string): string | undefined {
  try {
    const value: unknown = JSON.parse(literal)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
