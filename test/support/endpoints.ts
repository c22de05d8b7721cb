// Requests for any method of the contract, made from the options of the method.
import assert from 'node:assert/strict'
import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { http } from '#gen/google/api/annotations_pb.ts'
import { iam_scope } from '#gen/pinfold/annotations/annotations_pb.ts'
import type { Json } from './pinfold.ts'

/**
 * Methods that the contract declares unscoped, since their scope may be empty or a built-in role. With a scope, they need the
 * permission there.
 */
const optionalScopes: Record<string, string> = {
  'GroupsService.CreateGroup': 'parent',
  'RolesService.GetRole': 'uid',
  'Groups.Create': 'parent',
  'GroupInvites.CreateWithGroup': 'group',
}
export const optionalScopeOf = (desc: DescMethod): string | undefined =>
  optionalScopes[`${desc.parent.name}.${desc.name}`]

/** Request field that names the scope, as a path of proto names; empty for methods without a scope. */
export function scopeFieldOf(desc: DescMethod): string[] {
  const field =
    desc.input.fields.find((one) => hasOption(one, iam_scope)) ??
    desc.input.fields.find((one) => one.name === optionalScopeOf(desc))
  if (!field) return []
  return field.fieldKind === 'message' ? [field.name, 'uid'] : [field.name]
}

/** HTTP rules of the method; empty for methods of gRPC only. */
export function bindingsOf(desc: DescMethod): { verb: string; path: string; body: string }[] {
  if (!hasOption(desc, http)) return []
  const rule = getOption(desc, http)
  return [rule, ...rule.additionalBindings].map(({ pattern, body }) => {
    assert.ok(pattern.case && pattern.case !== 'custom')
    return { verb: pattern.case.toUpperCase(), path: pattern.value, body }
  })
}

/** Requests of a method for a scope, with only the required fields. */
export function restCalls(desc: DescMethod, uid: string): { verb: string; path: string; body: Json | undefined }[] {
  return bindingsOf(desc).map(({ verb, path: template, body }) => {
    const scope = scopeFieldOf(desc).join('.')
    const path = template.replace(/\{([\w.]+)[^}]*\}/g, (_, field: string) => (field === scope ? uid : 'a'.repeat(40)))
    const elsewhere = scope !== '' && !template.includes(`{${scope}`)
    if (body === '') return { verb, path: elsewhere ? `${path}?${scope}=${uid}` : path, body: undefined }
    return { verb, path, body: body === '*' && elsewhere ? { [scope]: uid } : emptyBody(desc, body) }
  })
}

/** The body may be a list, as in batch methods of version 1. */
export function emptyBody(desc: DescMethod, body: string): Json {
  return desc.input.fields.find(({ name }) => name === body)?.fieldKind === 'list' ? [] : {}
}
