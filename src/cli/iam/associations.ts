// Commands that link cloud accounts to a group. A group has one association, which can have an account at each cloud.
import { codes } from '#lib/errors.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { ApiError, type Body } from '../framework/api-client.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { type Command, type Commands, type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { confirm, oneFormats, outputOf, yesOption } from '../framework/outputs.ts'
import { describeOf, listOf, pairOf, removeOf, shownOne } from '../framework/verbs.ts'
import { associations } from './resources.ts'

const groupArgument = { name: '<group>', summary: 'Organization or folder: ORG, ORG/FOLDER or a uid' }

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
    options: [{ flags: '--account <number>', summary: 'AWS account, 12 digits', required: true }],
    block: ({ account }) => ({ account }),
  },
  {
    name: 'gcp',
    member: 'google',
    provider: 'GOOGLE',
    options: [
      { flags: '--project-id <id>', summary: 'ID of the Google Cloud project', required: true },
      { flags: '--project-number <number>', summary: 'Number of the Google Cloud project', required: true },
    ],
    block: ({ projectId, projectNumber }) => ({ projectId, projectNumber }),
  },
  {
    name: 'azure',
    member: 'azure',
    provider: 'AZURE',
    options: [
      { flags: '--tenant-id <id>', summary: 'ID of the Azure tenant', required: true },
      {
        flags: '--client-id <component=id>',
        summary: 'Client ID of the Azure application of a component; may be repeated',
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

const cloudNames = { aws: 'AWS account', gcp: 'Google Cloud project', azure: 'Azure tenant' } as const

const set = ({ member, options: own, block }: Cloud): Command =>
  apiCommand({
    arguments: [groupArgument],
    options: [...own, outputOf(oneFormats)],
    async run(api, options) {
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
      return shownOne(api, associations, shown)
    },
  })

const unset = ({ name, member }: Cloud): Command =>
  apiCommand({
    arguments: [groupArgument],
    options: [yesOption],
    async run(api, options, terminal) {
      const uid = await associations.find(api, String(options.group))
      await confirm(terminal, options.yes, `unlink the ${cloudNames[name]} of ${options.group}`)
      await api.call('PATCH', `${associations.path}/${uid}?updateMask=${member}`, {})
    },
  })

const check = ({ name, provider }: Cloud): Command =>
  apiCommand({
    arguments: [groupArgument],
    details: 'Exits with 1 if the account does not trust this server.',
    options: [outputOption],
    async run(api, options) {
      const uid = await associations.find(api, String(options.group))
      const body = { providerType: `ACCOUNT_PROVIDER_TYPE_${provider}` }
      const answer = await api.call('POST', `${associations.path}/${uid}:checkAccountAssociation`, body)
      const ready = answer.status === 'CHECK_STATUS_READY'
      if (ready) return { json: answer, text: `the ${cloudNames[name]} trusts this server` }
      const reason = plain(String(answer.message ?? '')) || plain(String(answer.reason ?? ''))
      const text = `the ${cloudNames[name]} does not trust this server: ${reason}`
      return { json: answer, text, code: exitCodes.failed }
    },
  })

/** One command for each cloud. */
const each = (verb: string, commandOf: (cloud: Cloud) => Command): Commands =>
  Object.fromEntries(clouds.map((cloud) => [`${verb} ${cloud.name}`, commandOf(cloud)]))

export const associationCommands: Commands = {
  ...each('link', set),
  ...each('unlink', unset),
  ...each('check', check),
  list: listOf(associations),
  describe: describeOf(associations),
  delete: removeOf(associations),
}
