// Parser of SCIM filters (RFC 7644, 3.4.2.2). Filters can use only attributes that are stored in a database column.
import type { Comparison, FilterAttribute, ScimFilter } from '#domains/iam/scim/scim-filter.model.ts'
import { wrong } from './errors.ts'
import { groupSchema, isOwnName, userSchema } from './names.ts'

const maxLength = 2048
/** Most conditions of a filter. The database may check each condition for each address of each person. */
const maxConditions = 5
const maxDepth = 10

/** Attributes that filters of one kind of resource can use. */
export type FilterNames = {
  schema: string
  /** Name of the list whose entries have sub-attributes. */
  list: 'emails' | 'members'
  names: Readonly<Record<string, FilterAttribute>>
  /** Supported attributes, for error messages. */
  text: string
}

export const userFilters: FilterNames = {
  schema: userSchema,
  list: 'emails',
  names: {
    id: 'id',
    username: 'userName',
    externalid: 'externalId',
    active: 'active',
    'meta.created': 'meta.created',
    'meta.lastmodified': 'meta.lastModified',
    emails: 'emails.value',
    'emails.value': 'emails.value',
    'emails.type': 'emails.type',
    'emails.primary': 'emails.primary',
  },
  text: 'userName, externalId, id, active, emails and meta',
}

export const groupFilters: FilterNames = {
  schema: groupSchema,
  list: 'members',
  names: {
    id: 'id',
    displayname: 'displayName',
    externalid: 'externalId',
    'meta.created': 'meta.created',
    'meta.lastmodified': 'meta.lastModified',
    members: 'members.value',
    'members.value': 'members.value',
  },
  text: 'displayName, externalId, id, members and meta',
}

const booleans: readonly FilterAttribute[] = ['active', 'emails.primary']
const times: readonly FilterAttribute[] = ['meta.created', 'meta.lastModified']
const operators: readonly string[] = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le', 'pr']

const refuse = (detail: string) => wrong('invalidFilter', detail)

/**
 * Parses a filter. Throws `invalidFilter` for a syntax error, for an attribute, operator or value that is not supported, and for a
 * filter beyond the limits.
 */
export function readFilter(text: string, names: FilterNames = userFilters): ScimFilter {
  if (text.length > maxLength) throw refuse(`the filter must be at most ${maxLength} characters long`)
  const reader = new FilterReader(tokensOf(text), names)
  const filter = reader.readOr('', 0)
  reader.end()
  return filter
}

const token = /\s*([()[\]]|"(?:[^"\\]|\\.)*"|[^\s()[\]"]+)/y

function tokensOf(text: string): string[] {
  const tokens: string[] = []
  const trimmed = text.trim()
  token.lastIndex = 0
  while (token.lastIndex < trimmed.length) {
    const at = token.lastIndex
    const found = token.exec(trimmed)?.[1]
    if (found === undefined) throw refuse(`the filter has a syntax error at character ${at + 1}`)
    tokens.push(found)
  }
  return tokens
}

/** Recursive-descent parser of one filter. `and` binds more strongly than `or`. */
class FilterReader {
  readonly #tokens: readonly string[]
  readonly #of: FilterNames
  #at = 0
  #conditions = 0

  constructor(tokens: readonly string[], of: FilterNames) {
    this.#tokens = tokens
    this.#of = of
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw refuse(`the filter has an unexpected ${this.#tokens[this.#at]}`)
  }

  /** Reads conditions separated by `or`. Inside of brackets, `prefix` is the name of the list, and outside it is empty. */
  readOr(prefix: string, depth: number): ScimFilter {
    if (depth > maxDepth) throw refuse(`the filter is nested deeper than ${maxDepth} levels`)
    return this.#readList('or', () => this.#readList('and', () => this.#readOne(prefix, depth)))
  }

  #readList(kind: 'and' | 'or', read: () => ScimFilter): ScimFilter {
    const parts = [read()]
    while (this.#skip(kind)) parts.push(read())
    return parts.length === 1 ? parts[0]! : { kind, parts }
  }

  #readOne(prefix: string, depth: number): ScimFilter {
    const isNot = this.#peek(1) === '(' && this.#skip('not')
    // A condition on members is looked up by one member. A negated condition would have to read all members of a group.
    if (isNot && prefix === 'members.') throw refuse('members: not is only supported before members[…]')
    if (this.#skip('(')) {
      const part = this.readOr(prefix, depth + 1)
      this.#expect(')')
      return isNot ? { kind: 'not', part } : part
    }
    return this.#readCondition(prefix, depth)
  }

  #readCondition(prefix: string, depth: number): ScimFilter {
    const { schema, list, names, text } = this.#of
    const written = this.#next('an attribute')
    const path = written.toLowerCase()
    const plain = isOwnName(path, schema) ? path.slice(schema.length + 1) : path
    if (prefix === '' && plain === list && this.#skip('[')) {
      const part = this.readOr(`${list}.`, depth + 1)
      this.#expect(']')
      // In `emails[type eq "work"].value eq "a@b"`, both conditions apply to the same address.
      if (!this.#peek()?.startsWith('.')) return { kind: 'item', part }
      return { kind: 'item', part: { kind: 'and', parts: [part, this.#readCondition(list, depth)] } }
    }
    if (++this.#conditions > maxConditions) throw refuse(`the filter must have at most ${maxConditions} conditions`)
    const name = prefix + plain
    const attribute = Object.hasOwn(names, name) ? names[name] : undefined
    if (attribute === undefined) throw refuse(`${written}: cannot be used in a filter; supported are ${text}`)
    const condition = this.#readComparison(attribute)
    return prefix === '' && attribute.startsWith(`${list}.`) ? { kind: 'item', part: condition } : condition
  }

  #readComparison(attribute: FilterAttribute): ScimFilter {
    const written = this.#next('an operator')
    const op = written.toLowerCase() as Comparison
    if (!operators.includes(op)) throw refuse(`${written} is not a filter operator`)
    if (attribute === 'members.value' && op !== 'eq' && op !== 'pr')
      throw refuse('members: only eq and pr are supported')
    if (op === 'pr') return { kind: 'compare', attribute, op, value: '' }
    return { kind: 'compare', attribute, op, value: readValue(attribute, op, this.#next('a value')) }
  }

  #peek(ahead = 0): string | undefined {
    return this.#tokens[this.#at + ahead]
  }

  #skip(word: string): boolean {
    const is = this.#peek()?.toLowerCase() === word
    if (is) this.#at++
    return is
  }

  #expect(word: string): void {
    if (!this.#skip(word)) throw refuse(`the filter lacks ${word}`)
  }

  #next(what: string): string {
    const found = this.#peek()
    if (found === undefined || /^[()[\]]$/.test(found)) throw refuse(`the filter lacks ${what}`)
    this.#at++
    return found
  }
}

function readValue(attribute: FilterAttribute, op: Comparison, literal: string): string | boolean {
  const text = textOf(literal)
  if (booleans.includes(attribute)) {
    const value = text.toLowerCase()
    if ((op === 'eq' || op === 'ne') && (value === 'true' || value === 'false')) return value === 'true'
    throw refuse(`${attribute} can only be compared by eq or ne with true or false`)
  }
  if (times.includes(attribute)) {
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN
    if (Number.isNaN(time)) throw refuse(`${attribute} can only be compared with a time such as 2026-11-29T08:00:00Z`)
    return new Date(time).toISOString()
  }
  return text
}

/** Text of a literal value. Microsoft Entra ID sometimes omits the quotes. */
function textOf(literal: string): string {
  let text: unknown = literal
  try {
    if (literal.startsWith('"')) text = JSON.parse(literal)
  } catch {
    throw refuse('a quoted value must be a valid JSON string')
  }
  if (typeof text !== 'string' || !text.isWellFormed() || /\p{Cc}/u.test(text)) {
    throw refuse('a value must not have control characters')
  }
  return text
}
