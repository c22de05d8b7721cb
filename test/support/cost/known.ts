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

/** Kinds of entry points, or single HTTP methods of them, that refuse every request of the guard, with the reason. */
export const refusedTargets: Readonly<Record<string, string>> = {
  'scim none': 'Paths that SCIM does not have',
  'ledger unknown': 'Paths that the transparency log does not have',
  'ui-ledger unknown': 'Paths that the transparency log of the console does not have',
  'ui-ledger witness': 'The console serves no witness',
  'oauth /oauth/callback': 'The browser must have started a sign-in at an identity provider',
  'ui POST /ui/enter': 'The forms of the guard have no sign-in code that is valid',
  'ui /ui/headless': 'The session must be that of a person, and the operator has the one of the guard',
  'ui /ui/sessions/end': 'The forms of the guard name no session that exists',
  'downloads report': 'The path is a signed token, which only the server can make',
}
