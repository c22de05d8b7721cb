// How a password is printed once: also as lines for a shell to read.
import type { OptionSpec } from '../shape/command.ts'
import { shellWord } from '../shape/outputs.ts'
import { visible } from '../shape/plain-text.ts'

export const tokenOutput: OptionSpec = {
  flags: '-o, --output <format>',
  summary: 'table, json for programs, or env for a shell',
  choices: ['table', 'json', 'env'],
}

/** Who signs in to the registry, and with what; PINFOLD_TOKEN would be the token that commands call the API with. */
export function tokenLines({ user, password }: { user: string; password: string }): string[] {
  return [
    `export PINFOLD_OCI_IDENTITY_ID=${shellWord(visible(user))}`,
    `export PINFOLD_OCI_TOKEN=${shellWord(visible(password))}`,
  ]
}
