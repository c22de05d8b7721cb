// The names of fields in the text of an error, spelled as the caller wrote them. `BadRequest` keeps the names of the contract.
import { AppError } from '#lib/errors.ts'

/** The part of a request in which names are looked up, in bytes. */
const maxSearched = 64 * 1024

/** The error in the spelling of a request, whose query and body are given; any other error as it is. */
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
