// Deletion of one, as of every resource, or of all in a group that have expired.
import { apiReader, parentOf } from '../shape/api-pages.ts'
import { CliError, type Command, exitCodes } from '../shape/command.ts'
import { confirm, type Item } from '../shape/outputs.ts'
import { type Resource, removeOf, unlessMissing } from '../shape/verbs.ts'

/** `expiryOf` tells when one has ended, as ISO text; an empty one never does. */
export function removeOrExpired<T extends Item>(resource: Resource<T>, expiryOf: (item: T) => string): Command {
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
        if (which === undefined) throw new CliError(exitCodes.usage, `name the ${one}, or give --expired`)
        if (parent !== undefined) throw new CliError(exitCodes.usage, '--parent goes with --expired')
        return usual.run(terminal, options)
      }
      if (which !== undefined)
        throw new CliError(exitCodes.usage, `--expired finds the ${many} itself: it takes no name`)
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
