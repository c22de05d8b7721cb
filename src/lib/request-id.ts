import { randomUUID } from 'node:crypto'

/** Request ID from the header of a proxy, if its form is acceptable. Otherwise a new one. */
export function newRequestId(given: string | undefined): string {
  return given !== undefined && /^[A-Za-z0-9._-]{8,64}$/.test(given) ? given : randomUUID()
}
