import { apiReader } from '../shape/api-pages.ts'
import { CliError, type Command, exitCodes } from '../shape/command.ts'
import { confirm } from '../shape/outputs.ts'
import { removeOf, unlessMissing } from '../shape/verbs.ts'
import { findProvider, mappings } from './provider-resources.ts'

const usual = removeOf(mappings)

/** As `delete` of every resource, and all of a provider at once. */
export const mappingsDelete: Command = {
  ...usual,
  arguments: [{ name: '[which]', summary: `${usual.arguments![0]!.summary}; none with --all` }],
  options: [
    { flags: '--all', summary: 'All of one provider, with --idp' },
    { flags: '--idp <provider>', summary: 'With --all: the identity provider, by name, ORG/NAME or uid' },
    ...usual.options,
  ],
  async run(terminal, options) {
    const { which, all, idp } = options
    if (all !== true) {
      if (which === undefined) throw new CliError(exitCodes.usage, 'name a group mapping, or give --all and --idp')
      return usual.run(terminal, options)
    }
    if (which !== undefined || idp === undefined) {
      throw new CliError(exitCodes.usage, '--all deletes the group mappings of a provider: it needs --idp, and no name')
    }
    const api = await apiReader(terminal, options)
    return unlessMissing(terminal, options, async () => {
      const provider = await findProvider(api, String(idp))
      const { items } = await api.list<{ uid: string }>(mappings.path, mappings.member, {
        'uidp.children_of': provider,
      })
      await confirm(terminal, options.yes, `delete ${items.length} group mappings of ${idp}`)
      for (const { uid } of items) await api.call('DELETE', `${mappings.path}/${uid}`)
      terminal.say(`deleted ${items.length} group mappings of ${idp}`)
    })
  },
}
