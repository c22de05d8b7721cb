import type { VexStatement } from './vex-statement.ts'

/**
 * How many signatures a report has that can be looked at, by which of some public keys, what it is about, and what they have
 * signed: that is read from the bytes that were verified. Empty where nobody of them has.
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
