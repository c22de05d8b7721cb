// Spelling of field names in error messages, as in the caller's request. `BadRequest` keeps the names of the contract.
import { AppError } from '#lib/errors.ts'

/** Length of the part of a request that is searched for names, in bytes. */
const maxSearched = 64 * 1024

/** Error with the spelling of a request's query and body. Other errors stay unchanged. */
export function asWritten(error: unknown, search: string, body: Buffer | undefined): unknown {
  if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') return error
  const field = error.details.find((detail) => detail.type === 'BadRequest')?.fieldViolations[0]?.field
  if (!field?.includes('_')) return error
  const written = search + (body?.toString('latin1', 0, maxSearched) ?? '')
  const spelled = field.replace(/[a-z0-9_]+/g, (name) => {
    const camel = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
    return written.includes(camel) && !written.includes(name) ? camel : name
  })
  if (spelled === field) return error
  const { code, message, details, reason, metadata, http, cause } = error
  return new AppError(
    code,
    message.replace(field, () => spelled),
    { details, reason, metadata, http, cause },
  )
}
