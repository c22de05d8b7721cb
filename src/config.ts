import { signInSettings, tokenSettings } from './config/access.ts'
import { ConfigError, type Setting, type SettingGroup } from './config/basics.ts'
import { conflicts, type FormerName, unknownSettings, variableOf } from './config/checks.ts'
import { outgoingSettings, quotaSettings, rateSettings, requestSettings } from './config/limits.ts'
import { eventSettings, monitoringSettings } from './config/monitoring.ts'
import { registrySettings, transparencyLogSettings, vulnerabilitySettings } from './config/registry.ts'
import { addressSettings, apiSettings, compatSettings, shutdownSettings, vendorOf } from './config/server.ts'
import { blobSettings, databaseSettings } from './config/storage.ts'

export { ConfigError, vendorOf }

/** All settings. */
export const settings = {
  ...addressSettings,
  ...databaseSettings,
  ...blobSettings,
  ...registrySettings,
  ...transparencyLogSettings,
  ...signInSettings,
  ...tokenSettings,
  ...quotaSettings,
  ...rateSettings,
  ...requestSettings,
  ...outgoingSettings,
  ...eventSettings,
  ...vulnerabilitySettings,
  ...monitoringSettings,
  ...shutdownSettings,
  ...apiSettings,
  ...compatSettings,
}

/** Groups of settings with their headings. `docs/config.md` and the output of `pinfold config` are made from them. */
export const settingGroups: readonly SettingGroup[] = [
  { title: 'Addresses and TLS', settings: addressSettings },
  { title: 'Database and encryption', settings: databaseSettings },
  { title: 'Blob storage', settings: blobSettings },
  { title: 'Registry', settings: registrySettings },
  { title: 'Transparency log', settings: transparencyLogSettings },
  { title: 'Sign-in, organizations and terms', settings: signInSettings },
  { title: 'Tokens and cloud accounts', settings: tokenSettings },
  {
    title: 'Quotas',
    about: 'Quotas apply to every organization without a quota of its own. `0` means no limit.',
    settings: quotaSettings,
  },
  {
    title: 'Rate limits and budgets',
    about: 'If several servers share a database, each allows an equal share of the limits per minute.',
    settings: rateSettings,
  },
  { title: 'Size and duration of requests', settings: requestSettings },
  {
    title: 'Requests to other systems',
    about:
      'By default, URLs that users configure must use HTTPS and lead to a public address. Lists of private hosts contain host names, addresses and CIDR ranges, separated by commas, such as `idp.corp.internal,10.2.0.0/16`.',
    settings: outgoingSettings,
  },
  { title: 'Events and audit log', settings: eventSettings },
  { title: 'Vulnerabilities and advisories', settings: vulnerabilitySettings },
  { title: 'Log, metrics and traces', settings: monitoringSettings },
  { title: 'Failover and shutdown', settings: shutdownSettings },
  { title: 'API and compatibility', settings: { ...apiSettings, ...compatSettings } },
]

/** Settings of commands that call a server. The server ignores them. */
export const clientVariables: Record<string, string> = {
  PINFOLD_API: 'URL of the server.',
  PINFOLD_IDENTITY: 'uid of the identity to sign in as.',
  PINFOLD_ID_TOKEN: 'OIDC token of the CI platform to sign in with, such as a token of `id_tokens` in GitLab.',
  PINFOLD_TOKEN: 'Token of the server to use instead of signing in.',
}

export type Config = { [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['parse']> } & {
  /** Environment variables of AWS tools, for a bucket. */
  aws: Record<string, string>
  /** Settings that were given under a former name. */
  formerNames: readonly FormerName[]
  /** True if the log level was chosen. Otherwise the server logs nothing before it is ready, except warnings and errors. */
  isLogLevelGiven: boolean
}

/** Former names of settings. */
export function formerOnes(): string[] {
  return Object.values<Setting<unknown>>(settings).flatMap(({ formerly }) => formerly ?? [])
}

/**
 * Reads the settings. Throws one ConfigError with all invalid settings. If a setting was given as a flag, the error names the
 * flag.
 */
export function readConfig(
  env: Record<string, string | undefined>,
  flags: Record<string, string | undefined> = {},
): Config {
  const config: Record<string, unknown> = {}
  const problems: string[] = []
  const formerNames: FormerName[] = []
  for (const [key, one] of Object.entries<Setting<unknown>>(settings)) {
    const { flag, parse, default: fallback } = one
    const given = flags[key]
    const { variable, former, problem } = variableOf(env, one)
    if (problem !== undefined) problems.push(problem)
    if (former) formerNames.push(former)
    try {
      config[key] = parse(given ?? (env[variable] || fallback), given !== undefined && flag ? flag : variable)
    } catch (error) {
      problems.push((error as Error).message)
    }
  }
  const current = Object.values(settings).map(({ env: variable }) => variable)
  problems.push(...unknownSettings(Object.keys(env), [...current, ...Object.keys(clientVariables)], formerOnes()))
  config.formerNames = formerNames
  config.isLogLevelGiven = flags.logLevel !== undefined || Boolean(env[settings.logLevel.env])
  config.aws = Object.fromEntries(Object.entries(env).filter(([name]) => name === 'HOME' || name.startsWith('AWS_')))
  const read = config as Config
  if (problems.length === 0) problems.push(...conflicts(read))
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return read
}
