// Limits on the message of a request, by who may call its method: the same for JSON over REST and for gRPC.
import type { Access } from '#app.ts'
import { jsonLimits, maxAnonymousBytes } from '#edge/read-body.ts'
import type { JsonLimits } from '#lib/json/json-limits.ts'

export type MessageLimits = JsonLimits & { bytes: number }

/** The operator's imports list up to 50,000 versions with their dates in one request. */
const importedMembers = 600_000

/** The limits of a method. Callers without a token send less: nobody knows who they are. */
export function limitsOf({ mode }: Pick<Access, 'mode'>, maxBodyBytes: number): MessageLimits {
  const bytes = mode === 'open' ? Math.min(maxAnonymousBytes, maxBodyBytes) : maxBodyBytes
  return { ...jsonLimits, ...(mode === 'everywhere' && { members: importedMembers }), bytes }
}
