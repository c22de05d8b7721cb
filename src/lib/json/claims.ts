// Claims of JSON Web Tokens: integers of any size, and claims inside objects.
import { parseUniqueJson } from './unique-json.ts'

type Claims = Readonly<Record<string, unknown>>
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown

/**
 * Parses the claims of a token. Integers too large for a number become a BigInt, so that they compare exactly. Throws a
 * SyntaxError for text that is not JSON, has a member twice or nests too deeply.
 */
export function parseClaims(text: string): unknown {
  parseUniqueJson(text)
  return parse(text, (_, value, { source = '' }) => {
    const isLarge = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source)
    return isLarge ? BigInt(source) : value
  })
}

/**
 * Claim with this name, or at this path, such as `realm_access.roles` or `kubernetes.io.namespace`. In a path, dots separate the
 * names of nested objects. A claim with the whole name has priority. Returns undefined if there is none, or if the path is
 * ambiguous.
 */
export function findClaim(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  const found: unknown[] = []
  collect(claims, name, found)
  return found.length === 1 ? found[0] : undefined
}

function collect(object: Claims, rest: string, found: unknown[]): void {
  for (const [key, value] of Object.entries(object)) {
    if (key === rest) found.push(value)
    else if (rest.startsWith(`${key}.`) && isObject(value)) collect(value, rest.slice(key.length + 1), found)
  }
}

function isObject(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
