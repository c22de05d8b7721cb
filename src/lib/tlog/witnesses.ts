import type { NoteKey } from './notes.ts'

/** Who is asked to sign the heads of our logs, and where; the URL is its submission prefix (c2sp.org/tlog-witness). */
export type Witness = { key: NoteKey; url: string }

/** How many of them have to sign: more than half. */
export function quorumOf(witnesses: number): number {
  return Math.floor(witnesses / 2) + 1
}
