// Inputs that exceed a limit today, each with the reason. The guard reports an entry that no longer does.

import { isImport } from '#api/message-limits.ts'
import { endpoints } from './methods.ts'

export type Known = {
  /** Pattern for `TARGET by CALLER: SHAPE`. */
  input: RegExp
  reason: string
}

const imports = endpoints.filter(({ method }) => isImport(method)).map(({ desc }) => desc.name)

export const known: readonly Known[] = [
  {
    input: new RegExp(`^(?:rest|grpc) \\S+/(?:${imports.join('|')}) by owner: `),
    reason: 'Only the operator may call these methods, and one import lists up to 600,000 members',
  },
]
