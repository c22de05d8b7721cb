import { type FieldViolation, invalid, refuseIfAny } from './errors.ts'

/** Properties of one member of a resource, for validation, patches and lists. */
export type Field = {
  column: string
  /** True if lists can be sorted by the member. */
  sort?: true
  /** True if a patch can change the member. */
  update?: true
  /** True if the member must not be empty. */
  required?: true
  /** Pattern for the text, or for each text of a list. */
  pattern?: RegExp
  /** Maximum length of the text, in UTF-16 code units. */
  maxLength?: number
}
export type Fields<T> = { readonly [K in keyof T]?: Field }

/**
 * Update of some members. `paths` are the members to change, in snake_case, with dots for nested ones. `value` has their new
 * values; a missing one becomes empty.
 */
export type Patch<T> = { paths: readonly string[]; value: Partial<T> }

// Rules for names and descriptions, common to most resources.
export const namePattern = /^[a-z0-9 ._-]{1,}$/
export const descriptionPattern = /^[\S ]{0,512}$/u
export const maxNameLength = 255

/** Members of resources with a name. Lists can be sorted by all of them but the description. */
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

/** Checks a resource. Throws one INVALID_ARGUMENT with all invalid fields. */
export function checkFields<T extends object>(
  fields: Fields<T>,
  value: T,
  extra: readonly FieldViolation[] = [],
): void {
  refuseIfAny([...violationsOf(fields, value), ...extra])
}

/** Violations of all invalid fields of a resource. */
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

/**
 * Resource after the patch. Throws if the patch changes a member that cannot be updated. Sending its present value is allowed.
 */
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
