// Which accounts at clouds belong to a group. A group has one association; each cloud is a part of it.
import { codes } from '#lib/errors.ts'
import { ApiError, type Body } from '../shape/api-client.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import {
  type Command,
  type Commands,
  exitCodes,
  type OptionSpec,
  type Options,
  outputOption,
} from '../shape/command.ts'
import { confirm, oneFormats, outputOf, printOne, yesOption } from '../shape/outputs.ts'
import { jsonText, plain } from '../shape/plain-text.ts'
import { describeOf, listOf, mentioned, pairOf, removeOf } from '../shape/verbs.ts'
import { associations } from './resources.ts'

const groupArgument = { name: '<group>', summary: 'ORG or ORG/FOLDER, or its uid' }

type Cloud = {
  name: 'aws' | 'gcp' | 'azure'
  member: string
  provider: string
  options: readonly OptionSpec[]
  block(options: Options): object
}

const clouds: readonly Cloud[] = [
  {
    name: 'aws',
    member: 'amazon',
    provider: 'AMAZON',
    options: [{ flags: '--account <number>', summary: 'The account, 12 digits', required: true }],
    block: ({ account }) => ({ account }),
  },
  {
    name: 'gcp',
    member: 'google',
    provider: 'GOOGLE',
    options: [
      { flags: '--project-id <id>', summary: 'The id of the project', required: true },
      { flags: '--project-number <number>', summary: 'Its number', required: true },
    ],
    block: ({ projectId, projectNumber }) => ({ projectId, projectNumber }),
  },
  {
    name: 'azure',
    member: 'azure',
    provider: 'AZURE',
    options: [
      { flags: '--tenant-id <id>', summary: 'The tenant', required: true },
      {
        flags: '--client-id <component=id>',
        summary: 'The application of a component; may be repeated',
        required: true,
        repeat: true,
      },
    ],
    block: ({ tenantId, clientId }) => ({
      tenantId,
      clientIds: Object.fromEntries((clientId as string[]).map((text) => pairOf('--client-id', text))),
    }),
  },
]

const set = ({ member, options: own, block }: Cloud): Command => ({
  arguments: [groupArgument],
  options: [...own, outputOf(oneFormats), ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = await associations.find(api, String(options.group))
    const path = `${associations.path}/${uid}`
    const there = await api.call('GET', path).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === codes.NOT_FOUND.number) return undefined
      throw error
    })
    const body = { [member]: block(options) }
    const item = there
      ? await api.call('PATCH', `${path}?updateMask=${member}`, body)
      : await api.call('POST', path, { name: 'accounts', ...body })
    const shown = item as Body & { uid: string; name: string }
    printOne(terminal, options.output, associations, shown, await mentioned(api, associations, [shown]))
    return exitCodes.ok
  },
})

const unset = ({ name, member }: Cloud): Command => ({
  arguments: [groupArgument],
  options: [yesOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = await associations.find(api, String(options.group))
    await confirm(terminal, options.yes, `forget the account at ${name} of ${options.group}`)
    await api.call('PATCH', `${associations.path}/${uid}?updateMask=${member}`, {})
    return exitCodes.ok
  },
})

const check = ({ name, provider }: Cloud): Command => ({
  arguments: [groupArgument],
  details: 'Ends with 1 where it does not.',
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = await associations.find(api, String(options.group))
    const body = { providerType: `ACCOUNT_PROVIDER_TYPE_${provider}` }
    const answer = await api.call('POST', `${associations.path}/${uid}:checkAccountAssociation`, body)
    const ready = answer.status === 'CHECK_STATUS_READY'
    if (options.output === 'json') terminal.print(jsonText(answer, 2))
    else if (ready) terminal.print(`the account at ${name} trusts this server`)
    else {
      const reason = plain(String(answer.message ?? '')) || plain(String(answer.reason ?? ''))
      terminal.print(`the account at ${name} does not trust this server: ${reason}`)
    }
    return ready ? exitCodes.ok : exitCodes.failed
  },
})

/** One verb for each cloud. */
const each = (verb: string, commandOf: (cloud: Cloud) => Command): Commands =>
  Object.fromEntries(clouds.map((cloud) => [`${verb} ${cloud.name}`, commandOf(cloud)]))

export const associationCommands: Commands = {
  ...each('set', set),
  ...each('unset', unset),
  ...each('check', check),
  list: listOf(associations),
  describe: describeOf(associations),
  delete: removeOf(associations),
}
