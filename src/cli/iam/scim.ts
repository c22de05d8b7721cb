// SCIM of an identity provider, and its token, which is shown once.
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import {
  CliError,
  type Command,
  type Commands,
  exitCodes,
  type OptionSpec,
  type Options,
  type Terminal,
} from '../shape/command.ts'
import { confirm, yesOption } from '../shape/outputs.ts'
import { plain, visible } from '../shape/plain-text.ts'
import { findProvider } from './identity-providers.ts'

const providerArgument = { name: '<provider>', summary: 'The identity provider: its name, ORG/NAME, or its uid' }
const lifeOptions: readonly OptionSpec[] = [
  { flags: '--expires-in <days>', summary: 'For how many days it is good; a year unless given' },
  { flags: '--never-expires', summary: 'It has no end' },
]

type Made = { token?: string; endpointUrl?: string; expireTime?: string }

async function providerOf(
  terminal: Terminal,
  options: Options,
): Promise<{ api: ApiReader; path: string; etag(): Promise<string> }> {
  const api = await apiReader(terminal, options)
  const path = `/iam/v2/identityProviders/${await findProvider(api, String(options.provider))}`
  const etag = async () => String(((await api.call('GET', path)).scim as { etag?: string } | undefined)?.etag ?? '')
  return { api, path, etag }
}

function lifeOf({ expiresIn, neverExpires }: Options): object {
  if (expiresIn === undefined) return neverExpires === true ? { neverExpires: true } : {}
  if (neverExpires === true) throw new CliError(exitCodes.usage, '--expires-in and --never-expires exclude each other')
  const until = Date.now() + wholeOf('--expires-in', expiresIn, 1) * 86_400_000
  return { expireTime: new Date(until).toISOString() }
}

function wholeOf(flag: string, given: Options[string], least: number): number {
  const text = String(given)
  if (/^[0-9]{1,5}$/.test(text) && Number(text) >= least) return Number(text)
  throw new CliError(exitCodes.usage, `${flag} must be a whole number from ${least} on`)
}

/** Nothing but the token goes to standard output. */
function show(terminal: Terminal, { token = '', endpointUrl = '', expireTime = 'never' }: Made): number {
  terminal.print(visible(token))
  terminal.say(`url      ${plain(endpointUrl)}\nexpires  ${plain(expireTime)}`)
  return exitCodes.ok
}

const switched = (enabled: boolean): Command => ({
  arguments: [providerArgument],
  options: callerOptions,
  async run(terminal, options) {
    const { api, path, etag } = await providerOf(terminal, options)
    await api.call('POST', `${path}:setScimEnabled`, { enabled, etag: await etag() })
    return exitCodes.ok
  },
})

const generate: Command = {
  arguments: [providerArgument],
  options: [...lifeOptions, ...callerOptions],
  async run(terminal, options) {
    const life = lifeOf(options)
    const { api, path } = await providerOf(terminal, options)
    return show(terminal, await api.call('POST', `${path}:generateScimToken`, life))
  },
}

const regenerate: Command = {
  arguments: [providerArgument],
  options: [
    ...lifeOptions,
    {
      flags: '--overlap <hours>',
      summary: 'How long the old one stays good: 1 unless given, 24 at most, 0 for not at all',
    },
    ...callerOptions,
  ],
  async run(terminal, options) {
    const life = lifeOf(options)
    const overlap =
      options.overlap === undefined ? {} : { overlap: `${wholeOf('--overlap', options.overlap, 0) * 3600}s` }
    const { api, path, etag } = await providerOf(terminal, options)
    const body = { ...life, ...overlap, etag: await etag() }
    return show(terminal, await api.call('POST', `${path}:regenerateScimToken`, body))
  },
}

const revoke: Command = {
  arguments: [providerArgument],
  options: [yesOption, ...callerOptions],
  async run(terminal, options) {
    const { api, path } = await providerOf(terminal, options)
    await confirm(terminal, options.yes, `end the SCIM tokens of ${options.provider}`)
    await api.call('POST', `${path}:revokeScimToken`, {})
    return exitCodes.ok
  },
}

export const scim: Commands = {
  enable: switched(true),
  disable: switched(false),
  'token generate': generate,
  'token regenerate': regenerate,
  'token revoke': revoke,
}
