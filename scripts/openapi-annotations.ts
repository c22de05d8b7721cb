import { type DescField, type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { http } from '#gen/google/api/annotations_pb.ts'
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.ts'
import type { HttpRule } from '#gen/google/api/http_pb.ts'
import { event, iam, query_form } from '#gen/pinfold/annotations/annotations_pb.ts'
import { CapabilitySchema, capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'

type Http = { httpMethod: string; path: string; body: string }

// Options of the contract, in terms of OpenAPI.

export function httpOf(method: DescMethod): Http[] {
  if (!hasOption(method, http)) return []
  const rule = getOption(method, http)
  return [rule, ...rule.additionalBindings].map(toHttp)
}

export function behaviourOf(field: DescField): { readOnly: boolean; writeOnly: boolean; isRequired: boolean } {
  const behaviours = getOption(field, field_behavior)
  return {
    readOnly: behaviours.includes(FieldBehavior.OUTPUT_ONLY),
    writeOnly: behaviours.includes(FieldBehavior.INPUT_ONLY),
    isRequired: behaviours.includes(FieldBehavior.REQUIRED),
  }
}

/** True if an element of a repeated message can be written as a query parameter. */
export function hasQueryForm(field: DescField): boolean {
  return hasOption(field, query_form)
}

export function extensionsOf(method: DescMethod): Record<string, unknown> {
  const { mode } = getOption(method, iam)
  const emitted = hasOption(method, event) ? { 'x-pinfold-event': getOption(method, event).type } : {}
  if (mode.case !== 'enabled') return { security: [], ...emitted }
  return { 'x-pinfold-capabilities': mode.value.capabilities.map(capabilityName), ...emitted }
}

/** Pattern for names of capabilities in comments, such as `CAP_IAM_GROUPS_LIST`. */
export const capabilityNames: ReadonlySet<string> = new Set(
  CapabilitySchema.values.map((value) => getOption(value, capability).name),
)

function toHttp({ pattern, body }: HttpRule): Http {
  if (pattern.case === undefined || pattern.case === 'custom') throw new Error('an http option without a plain method')
  return { httpMethod: pattern.case, path: pattern.value, body }
}

/** Returns the name of a capability in comments. */
export function capabilityName(number: number): string {
  const value = CapabilitySchema.values.find((one) => one.number === number)
  return value ? getOption(value, capability).name : String(number)
}
