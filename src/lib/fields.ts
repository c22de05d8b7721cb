import { type FieldViolation, invalid, refuseIfAny } from './errors.ts'

/** Properties of one member of a resource. Validation, patches, lists and filters all read them. */
export type Field = {
  column: string
  /** Lists may be ordered by it. */
  sort?: true
  /** A patch may change it. */
  update?: true
  /** May not be empty. */
  required?: true
  /** Pattern that the text, or each text of a list, must match. */
  pattern?: RegExp
  /** The longest text, in UTF-16 units. */
  maxLength?: number
}
export type Fields<T> = { readonly [K in keyof T]?: Field }

/** The members named by `paths` (snake_case, nested with dots) take their value from `value`, where absent means empty. */
export type Patch<T> = { paths: readonly string[]; value: Partial<T> }

// The product's rules for the texts that most resources share.
export const namePattern = /^[a-z0-9 ._-]{1,}$/
export const descriptionPattern = /^[\S ]{0,512}$/u
export const maxNameLength = 255

/** The members that resources with a name have; lists can be ordered by all but the description. */
export const namedFields = {
  uid: { column: 'uid', sort: true },
  name: { column: 'name', sort: true, update: true, required: true, pattern: namePattern, maxLength: maxNameLength },
  description: { column: 'description', update: true, pattern: descriptionPattern },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Record<string, Field>

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

export function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** Throws one INVALID_ARGUMENT that names every field of `value` that breaks its rule. */
export function checkFields<T extends object>(
  fields: Fields<T>,
  value: T,
  extra: readonly FieldViolation[] = [],
): void {
  refuseIfAny([...violationsOf(fields, value), ...extra])
}

/** Every field of `value` that breaks its rule. */
export function violationsOf<T extends object>(fields: Fields<T>, value: T): FieldViolation[] {
  const violations: FieldViolation[] = []
  for (const [name, field] of Object.entries(fields) as [keyof T & string, Field][]) {
    const given = value[name]
    const texts = Array.isArray(given) ? (given as unknown[]) : [given]
    for (const text of texts) {
      const description = problemOf(name, field, text)
      if (description) violations.push({ field: snakeCase(name), description })
    }
  }
  return violations
}

function problemOf(name: string, field: Field, text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  if (text === '' && !field.required && !field.pattern) return undefined
  if (field.pattern && !field.pattern.test(text)) return `${snakeCase(name)} must match "${field.pattern.source}"`
  if (field.required && text === '') return 'is required'
  if (field.maxLength !== undefined && text.length > field.maxLength) {
    return `must be at most ${field.maxLength} characters long`
  }
  return undefined
}

/** The resource as the patch leaves it. Restating an immutable value is fine, changing it is not. */
export function applyPatch<T extends object>(fields: Fields<T>, current: T, patch: Patch<T>): T {
  const next = structuredClone(current)
  for (const path of patch.paths) {
    const [head, ...rest] = path.split('.').map(camelCase) as [keyof T & string, ...string[]]
    const field = fields[head]
    if (!field) continue
    const given = patch.value[head]
    if (!field.update) {
      if (isEmpty(given) || JSON.stringify(given) === JSON.stringify(current[head])) continue
      throw invalid({ field: snakeCase(head), description: 'cannot be changed after the resource was created' })
    }
    const value = rest.length > 0 ? valueAt(patch.value, [head, ...rest]) : (given ?? emptyLike(current[head]))
    setNested(next, [head, ...rest], value)
  }
  return next
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === '' ||
    value === 0 ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  )
}

function emptyLike(value: unknown): unknown {
  if (typeof value === 'string') return ''
  if (typeof value === 'number') return 0
  if (typeof value === 'boolean') return false
  return Array.isArray(value) ? [] : undefined
}

function valueAt(root: object, path: readonly string[]): unknown {
  let at: unknown = root
  for (const step of path) at = at === undefined || at === null ? undefined : (at as Record<string, unknown>)[step]
  return at
}

function setNested(root: object, path: readonly string[], value: unknown): void {
  let at = root as Record<string, unknown>
  for (const step of path.slice(0, -1)) {
    at[step] ??= {}
    at = at[step] as Record<string, unknown>
  }
  const last = path.at(-1)!
  if (value === undefined) delete at[last]
  else at[last] = value
}
