import { dockerConfigFile, passwordFor, usesCredentialHelper } from '../registry/docker-config.ts'
import type { Options, Terminal } from '../shape/command.ts'
import { accessToken, registryOf, sessionOf } from '../shape/session.ts'
import type { Credentials } from './registry-client.ts'

/** What docker would show to the registry: the password of its file, or a token of ours; nothing when it has neither. */
export async function registryCredentials(
  terminal: Terminal,
  options: Options,
  registry: string,
): Promise<Credentials | undefined> {
  const file = dockerConfigFile(terminal.env)
  if (!usesCredentialHelper(file, registry)) return passwordFor(file, registry)
  const session = sessionOf(terminal, options)
  if (registryOf(session) !== registry) return undefined
  return { user: '_token', password: await accessToken(terminal, session, registry) }
}
