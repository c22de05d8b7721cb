// Limits on request messages, by the permission of the method. They are the same for JSON over REST and for gRPC.
import type { Method } from '#app.ts'
import { maxAnonymousBytes } from '#edge/body-bytes.ts'
import { jsonLimits } from '#edge/read-body.ts'
import type { JsonLimits } from '#lib/json/json-limits.ts'

export type MessageLimits = JsonLimits & { bytes: number }

/** Maximum number of members in an import by the operator. Such a request has up to 50,000 versions with dates. */
const importedMembers = 600_000

/** True if the method is an import by the operator, such as `ImportTagHistory` and `PutVulnerabilityRecords`. */
export function isImport({ access, desc }: Pick<Method, 'access' | 'desc'>): boolean {
  return access.mode === 'everywhere' && /^(?:Import|PutVulnerability)/.test(desc.name)
}

/** Limits of a method. They are lower for methods without a token, whose callers are anonymous. */
export function limitsOf(method: Pick<Method, 'access' | 'desc'>, maxBodyBytes: number): MessageLimits {
  if (method.access.mode === 'open') return limitsOfOpen(maxBodyBytes)
  return { ...jsonLimits, ...(isImport(method) && { members: importedMembers }), bytes: maxBodyBytes }
}

/** Limits of methods without a token. */
export function limitsOfOpen(maxBodyBytes: number): MessageLimits {
  return { ...jsonLimits, bytes: Math.min(maxAnonymousBytes, maxBodyBytes) }
}

/** Size of requests to health checks and reflection. They contain one name of a service, a type or a file. */
const maxLibraryBytes = 4 * 1024

/** Limits of health checks and reflection, which libraries serve. */
export function limitsOfLibrary(maxBodyBytes: number): MessageLimits {
  return { ...jsonLimits, bytes: Math.min(maxLibraryBytes, maxBodyBytes) }
}
