// Commands of organizations, folders, identities, role bindings and invites.
import { apiReader, parentOf } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { confirm, type Item } from '../framework/outputs.ts'
import { createOf, type Resource, removeOf, unlessMissing, verbsOf } from '../framework/verbs.ts'
import { folders, organizations, parentOption } from './groups.ts'
import { identities, invites, roleBindings } from './resources.ts'

const createOrganization = createOf(organizations)

export const organizationCommands: Commands = {
  ...verbsOf(organizations, { listed: { summary: '', query: { 'uidp.in_root': 'true' } } }),
  /** If the command acts as the operator of a data folder, the clients on this machine can be signed in as well. */
  create: {
    ...createOrganization,
    options: [
      {
        flags: '--configure-docker',
        summary: 'Also have docker, crane and others on this machine sign in to the registry',
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

export const folderCommands = verbsOf(folders, { place: parentOption })

export const identityCommands: Commands = {
  ...verbsOf(identities, { place: parentOption }),
  delete: removeOrExpired(identities, ({ staticKeys }) => staticKeys?.expirationTime ?? ''),
}

export const roleBindingCommands = verbsOf(roleBindings, { place: parentOption, named: false })

export const inviteCommands: Commands = {
  ...verbsOf(invites, { place: parentOption, named: false }),
  delete: removeOrExpired(invites, ({ expirationTime = '' }) => expirationTime),
}

/** Deletion of one, or of all in a group that have expired. `expiryOf` returns ISO text, empty for an item without an end. */
function removeOrExpired<T extends Item>(resource: Resource<T>, expiryOf: (item: T) => string): Command {
  const usual = removeOf(resource)
  const [one, many] = resource.words
  return {
    ...usual,
    arguments: [{ name: '[which]', summary: `${usual.arguments![0]!.summary}; none with --expired` }],
    options: [
      { flags: '--expired', summary: 'All that have expired, in a group and below it' },
      { flags: '--parent <group>', summary: 'With --expired: the group; your own organisation unless given' },
      ...usual.options,
    ],
    async run(terminal, options) {
      const { which, expired, parent } = options
      if (expired !== true) {
        if (which === undefined) throw usageError(`name the ${one}, or give --expired`)
        if (parent !== undefined) throw usageError('--parent goes with --expired')
        return usual.run(terminal, options)
      }
      if (which !== undefined) throw usageError(`--expired finds the ${many} itself: it takes no name`)
      const api = await apiReader(terminal, options)
      return unlessMissing(terminal, options, async () => {
        const group = await parentOf(api, parent)
        const { items } = await api.list<T>(resource.path, resource.member, { 'uidp.descendants_of': group })
        const now = new Date().toISOString()
        const over = items.filter((item) => expiryOf(item) !== '' && expiryOf(item) <= now)
        if (over.length > 0) await confirm(terminal, options.yes, `delete ${over.length} ${many} that have expired`)
        for (const { uid } of over) await api.call('DELETE', `${resource.path}/${uid}`)
        terminal.say(`deleted ${over.length} ${many} that had expired`)
      })
    },
  }
}
