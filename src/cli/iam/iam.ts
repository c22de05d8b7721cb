// Commands of organizations, folders, identities, members and invitations.
import { apiReader, parentOf } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands, OptionSpec } from '../framework/command.ts'
import { confirm, type Item } from '../framework/outputs.ts'
import { createOf, optionalArgument, type Resource, removeOf, unlessMissing, verbsOf } from '../framework/verbs.ts'
import { folders, organizations, parentOption } from './groups.ts'
import { identities, invites, roleBindings } from './resources.ts'

/** Option `--in` for the group to which a role binding or an invitation gives access. */
const parentSpecOf = (what: string): OptionSpec => ({
  ...parentOption,
  summary: `Organization or folder of ${what}: ORG, ORG/FOLDER or a uid; default: default.group of your defaults`,
})

const createOrganization = createOf(organizations)

export const organizationCommands: Commands = {
  ...verbsOf(organizations, { listed: { query: { 'uidp.in_root': 'true' } } }),
  /** As the operator of a data folder, `organizations create` can also sign in docker and other clients on this machine. */
  create: {
    ...createOrganization,
    options: [
      {
        flags: '--configure-docker',
        summary: 'Also configure Docker and compatible clients on this machine to sign in to the registry',
      },
      ...createOrganization.options,
    ],
    async run(terminal, options) {
      if (options.configureDocker !== true) return createOrganization.run(terminal, options)
      const { checkLocalDocker, configureLocalDocker } = await import('../registry/configure-docker.ts')
      checkLocalDocker(terminal)
      const code = await createOrganization.run(terminal, options)
      await configureLocalDocker(terminal, options, String(options.name))
      return code
    },
  },
}

export const folderCommands = verbsOf(folders, { parentSpec: parentOption })

export const identityCommands: Commands = {
  ...verbsOf(identities, { parentSpec: parentOption }),
  delete: removeOrExpired(identities, ({ staticKeys }) => staticKeys?.expirationTime ?? ''),
}

const {
  create,
  delete: remove,
  ...otherVerbs
} = verbsOf(roleBindings, { parentSpec: parentSpecOf('the role'), named: false }) as Record<
  'create' | 'delete',
  Command
>

const identityFlags = '--identity <identity>'

export const memberCommands: Commands = {
  add: {
    ...create,
    arguments: [
      { name: '<identity>', summary: 'Identity of the member: name, GROUP/NAME or uid', former: identityFlags },
    ],
    options: create.options.filter(({ flags }) => flags !== identityFlags),
  },
  ...otherVerbs,
  remove,
}

export const inviteCommands: Commands = {
  ...verbsOf(invites, { parentSpec: parentSpecOf('the invitation'), named: false }),
  delete: removeOrExpired(invites, ({ expirationTime = '' }) => expirationTime),
}

/**
 * Command that deletes one resource, or all expired ones of a group. `expiryOf` returns the expiry time, or empty text for a
 * resource that does not expire.
 */
function removeOrExpired<T extends Item>(resource: Resource<T>, expiryOf: (item: T) => string): Command {
  const usual = removeOf(resource)
  const [one, many] = resource.words
  return {
    ...usual,
    arguments: [optionalArgument(usual, 'not with --expired')],
    options: [
      {
        flags: '--expired',
        summary: `Delete all expired ${many} of an organization or folder, and of the folders below`,
      },
      {
        flags: '--in <group>',
        summary: 'Organization or folder, with --expired: ORG, ORG/FOLDER or a uid; default: your own organization',
        former: ['--parent <group>'],
      },
      ...usual.options,
    ],
    async run(terminal, options) {
      const { which, expired, in: parent } = options
      if (expired !== true) {
        if (which === undefined) throw usageError(`nothing was deleted: name the ${one}, or give --expired`)
        if (parent !== undefined) throw usageError('nothing was deleted: --in can only be given with --expired')
        return usual.run(terminal, options)
      }
      if (which !== undefined)
        throw usageError(`nothing was deleted: --expired selects the ${many}, so none can be named`)
      const api = await apiReader(terminal, options)
      return unlessMissing(terminal, options, async () => {
        const group = await parentOf(api, parent)
        const { items } = await api.list<T>(resource.path, resource.member, { 'uidp.descendants_of': group })
        const now = new Date().toISOString()
        const over = items.filter((item) => expiryOf(item) !== '' && expiryOf(item) <= now)
        if (over.length > 0) await confirm(terminal, options.yes, `delete ${over.length} expired ${many}`)
        for (const { uid } of over) await api.call('DELETE', `${resource.path}/${uid}`)
        terminal.say(`Deleted ${over.length} expired ${many}`)
      })
    },
  }
}
