// Spelling of field names in error messages. A message has the spelling of the client's request. `BadRequest` details have the
// names of the contract.
import { AppError } from '#lib/errors.ts'

/** Number of bytes of a request body that are searched for field names. */
const maxSearched = 64 * 1024

/** Error with field names spelled as in the query and the body of the request. Returns other errors unchanged. */
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
