// Spelling of field names in error messages. A message has the spelling of the client's request. `BadRequest` details have the
// names of the contract.
import { AppError } from '#lib/errors.ts'

/** Number of bytes of a request body that are searched for field names. */
const maxSearched = 64 * 1024

/** Error whose text spells field names as the query and the body of the request do. Returns other errors unchanged. */
export function asWritten(error: unknown, search: string, body: Buffer | undefined): unknown {
  if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') return error
  if (!error.details.some((detail) => detail.type === 'BadRequest') || !error.message.includes('_')) return error
  const written = search + (body?.toString('latin1', 0, maxSearched) ?? '')
  const spelled = error.message.replace(/[a-z0-9_]+/g, (name) => {
    const camel = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
    return written.includes(camel) && !written.includes(name) ? camel : name
  })
  if (spelled === error.message) return error
  const { code, details, reason, metadata, http, cause } = error
  return new AppError(code, spelled, { details, reason, metadata, http, cause })
}
