import type { Answer, Json } from './pinfold.ts'

/** Fields of a refusal in the shape that tests compare. */
export function refusalOf({ status, body }: Answer): { http: number; code: number; reason: string; fields: string[] } {
  const details = (body.details ?? []) as Json[]
  const named = (type: string) => details.find((detail) => detail['@type'] === `type.googleapis.com/google.rpc.${type}`)
  const violations = (named('BadRequest')?.fieldViolations ?? []) as { field: string }[]
  return {
    http: status,
    code: body.code,
    reason: named('ErrorInfo')?.reason,
    fields: [...new Set(violations.map(({ field }) => field))],
  }
}
