import type { VexStatement } from './vex-statement.ts'

/**
 * Number of signatures of a report that can be verified, the keys that have signed it, its subjects, and its signed content. The
 * content is read from the bytes that were verified. Empty if no given key has signed it.
 */
export type Signed = {
  signatures: number
  signers: number[]
  subjects: string[]
  author: string
  saidTime: string
  statements: VexStatement[]
}

export const unsigned: Signed = {
  ...{ signatures: 0, signers: [], subjects: [], author: '', saidTime: '', statements: [] },
}
