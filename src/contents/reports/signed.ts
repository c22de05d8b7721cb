import type { VexStatement } from './vex-statement.ts'

/**
 * Signatures of a report. These are the number of signatures that can be verified, the keys that signed the report, its subjects
 * and its signed content. The content comes from the bytes that were verified. It is empty if no given key signed the report.
 */
export type Signed = {
  signatures: number
  signers: number[]
  subjects: string[]
  author: string
  statementTime: string
  statements: VexStatement[]
}

export const unsigned: Signed = {
  ...{ signatures: 0, signers: [], subjects: [], author: '', statementTime: '', statements: [] },
}
