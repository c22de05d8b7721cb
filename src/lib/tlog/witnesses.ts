import type { NoteKey } from './notes.ts'

/** Witness that signs the checkpoints of our logs. The URL is its submission prefix (c2sp.org/tlog-witness). */
export type Witness = { key: NoteKey; url: string }

/** Number of witnesses that must sign a checkpoint: more than half. */
export function quorumOf(witnesses: number): number {
  return Math.floor(witnesses / 2) + 1
}
