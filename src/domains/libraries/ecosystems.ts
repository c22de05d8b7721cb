// Ecosystems with their enum numbers in the API.
import { invalid } from '#lib/errors.ts'
import type { Ecosystem } from './artifacts.model.ts'

/** Numbers of the enum Ecosystem in the API. */
const numbers = { java: 1, python: 2 } as const

export function ecosystemNumber(ecosystem: Ecosystem): 1 | 2 {
  return numbers[ecosystem]
}

/** Returns the ecosystem with this number. Throws INVALID_ARGUMENT with `field` for an unknown number. */
export function ecosystemOf(number: number, field: string): Ecosystem {
  if (number === numbers.java) return 'java'
  if (number === numbers.python) return 'python'
  throw invalid({ field, description: 'must be ECOSYSTEM_JAVA or ECOSYSTEM_PYTHON' })
}
