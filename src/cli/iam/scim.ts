// Commands that enable SCIM for an identity provider, and create its token. The token is printed only once.
import type { GenerateScimTokenResponseJson } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { plain, visible } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands, OptionSpec, Options, Terminal } from '../framework/command.ts'
import { confirm, yesOption } from '../framework/outputs.ts'
import { findProvider } from './identity-providers.ts'

const providerArgument = { name: '<provider>', summary: 'Identity provider: name, ORG/NAME or uid' }
const lifeOptions: readonly OptionSpec[] = [
  { flags: '--expires-in <days>', summary: 'Days until the token expires; default: one year' },
  { flags: '--never-expires', summary: 'Create a token that never expires' },
]

async function providerOf(api: ApiReader, { provider }: Options): Promise<{ path: string; etag(): Promise<string> }> {
  const path = `/iam/v2/identityProviders/${await findProvider(api, String(provider))}`
  const etag = async () => String(((await api.call('GET', path)).scim as { etag?: string } | undefined)?.etag ?? '')
  return { path, etag }
}

function lifeOf({ expiresIn, neverExpires }: Options): object {
  if (expiresIn === undefined) return neverExpires === true ? { neverExpires: true } : {}
  if (neverExpires === true) throw usageError('--expires-in and --never-expires cannot be combined; give one of them')
  const until = Date.now() + wholeNumberOf('--expires-in', expiresIn, 1) * 86_400_000
  return { expireTime: new Date(until).toISOString() }
}

function overlapOf({ overlap }: Options): object {
  return overlap === undefined ? {} : { overlap: `${wholeNumberOf('--overlap', overlap, 0) * 3600}s` }
}

function wholeNumberOf(flag: string, given: Options[string], least: number): number {
  const text = String(given)
  if (/^[0-9]{1,5}$/.test(text) && Number(text) >= least) return Number(text)
  throw usageError(`${flag} must be a whole number of at least ${least}`)
}

/** Standard output has only the token, so that a script can store it. */
function show(
  terminal: Terminal,
  { token = '', endpointUrl = '', expireTime = 'never' }: GenerateScimTokenResponseJson,
): void {
  terminal.print(visible(token))
  terminal.say(`url      ${plain(endpointUrl)}\nexpires  ${plain(expireTime)}`)
}

const switched = (enabled: boolean): Command =>
  apiCommand({
    arguments: [providerArgument],
    options: [],
    async run(api, options) {
      const { path, etag } = await providerOf(api, options)
      await api.call('POST', `${path}:setScimEnabled`, { enabled, etag: await etag() })
    },
  })

const generate = apiCommand({
  arguments: [providerArgument],
  options: lifeOptions,
  check: lifeOf,
  async run(api, options, terminal) {
    const { path } = await providerOf(api, options)
    show(terminal, await api.call('POST', `${path}:generateScimToken`, lifeOf(options)))
  },
})

const regenerate = apiCommand({
  arguments: [providerArgument],
  options: [
    ...lifeOptions,
    {
      flags: '--overlap <hours>',
      summary: 'Hours until the old token expires, from 0 to 24; default: 1',
    },
  ],
  check: (options) => void [lifeOf(options), overlapOf(options)],
  async run(api, options, terminal) {
    const { path, etag } = await providerOf(api, options)
    const body = { ...lifeOf(options), ...overlapOf(options), etag: await etag() }
    show(terminal, await api.call('POST', `${path}:regenerateScimToken`, body))
  },
})

const revoke = apiCommand({
  arguments: [providerArgument],
  options: [yesOption],
  async run(api, options, terminal) {
    const { path } = await providerOf(api, options)
    await confirm(terminal, options.yes, `revoke the SCIM tokens of ${options.provider}`)
    await api.call('POST', `${path}:revokeScimToken`, {})
  },
})

export const scim: Commands = {
  enable: switched(true),
  disable: switched(false),
  'token generate': generate,
  'token regenerate': regenerate,
  'token revoke': revoke,
}
