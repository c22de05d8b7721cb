// Options that select vulnerability data sources, and the locations that they are read from.
import { OutgoingError, type OutgoingOptions } from '#lib/net/outgoing.ts'
import { hostOf, privateAddresses } from '#lib/net/private-addresses.ts'
import { type Source, sourceNamed, usualSources, withNeeded } from '#sources/definitions.ts'
import type { WrongRecord } from '#sources/values.ts'
import { usageError } from '../framework/cli-error.ts'
import type { OptionSpec, Options, Terminal } from '../framework/command.ts'
import { accessToken, registryOf, sessionOf } from '../framework/session.ts'
import { configOf } from '../framework/settings.ts'
import { sourceUrl } from '../imports/library-sources.ts'
import { dockerConfigFile, passwordFor, usesCredentialHelper } from '../registry/docker-config.ts'
import type { Credentials } from './registry-client.ts'

export const sourceOptions: readonly OptionSpec[] = [
  {
    flags: '--source <name>',
    summary:
      'Only this data source, such as osv/PyPI; default: those of PINFOLD_VULNERABILITY_SOURCES; may be repeated',
    repeat: true,
  },
  { flags: '--mirror <url>', summary: 'URL of a mirror of the data sources; default: PINFOLD_VULNERABILITY_MIRROR' },
]

/**
 * Data sources of the options. `way` limits the addresses of outgoing requests: only a mirror, which the operator chooses, may
 * have a private address. `needed` stands for the name `auto`. Throws CliError.
 */
export function sourcesOf(
  terminal: Terminal,
  options: Options,
  needed: readonly string[] = usualSources,
): { sources: Source[]; way: OutgoingOptions } {
  const config = configOf(terminal, options)
  const given = options.mirror === undefined ? config.vulnerabilityMirror : String(options.mirror)
  const mirror = given === '' ? undefined : sourceUrl(given, '--mirror')
  const names = (options.source as readonly string[] | undefined) ?? config.vulnerabilitySources
  const sources = withNeeded(names, needed).map((name) => requireSource(name, mirror?.href ?? ''))
  // HTTP without TLS is allowed only for a mirror on this machine.
  const stays = mirror !== undefined && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(mirror.hostname)
  return { sources, way: { allowed: privateAddresses(mirror ? [hostOf(mirror)] : []), allowHttp: stays } }
}

export function requireSource(name: string, mirror: string): Source {
  const source = sourceNamed(name, mirror)
  if (source) return source
  throw usageError(
    `${name} is not a data source: give auto, osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY, debian-tracker, kev or epss`,
  )
}

export function messageOf(error: OutgoingError | WrongRecord): string {
  return error instanceof OutgoingError && error.status !== undefined
    ? `the response had status ${error.status}`
    : error.message
}

/**
 * Credentials for the registry: the password in Docker's file, or a token if it is the user's own server. Undefined without both.
 */
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
