import { randomUUID } from 'node:crypto'

/** The id that a proxy in front of us gave the request, when it is a sane one; else a new one. */
export function newRequestId(given: string | undefined): string {
  return given !== undefined && /^[A-Za-z0-9._-]{8,64}$/.test(given) ? given : randomUUID()
}
