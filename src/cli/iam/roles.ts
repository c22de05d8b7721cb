import { apiCommand, apiReader } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { listFormats, outputOf } from '../framework/outputs.ts'
import { listOf, updateOf, verbsOf } from '../framework/verbs.ts'
import { parentOption } from './groups.ts'
import { roles } from './resources.ts'

type Old = { id: string; capabilities?: string[] }

const all = listOf(roles)

/** The usual list command, with a filter for roles that have a capability. */
const rolesList: Command = {
  ...all,
  options: [
    {
      flags: '--capabilities <names>',
      summary: 'Only roles with all these capabilities, separated by commas, such as repo.list,tag.list',
    },
    ...all.options,
  ],
  async run(terminal, options) {
    if (options.capabilities === undefined) return all.run(terminal, options)
    const wanted = namesIn([String(options.capabilities)])
    const api = await apiReader(terminal, options)
    const { items = [] } = (await api.call('GET', '/iam/v1/roles')) as { items?: Old[] }
    const fit = new Set(
      items.filter(({ capabilities = [] }) => wanted.every((one) => capabilities.includes(one))).map(({ id }) => id),
    )
    return listOf({ ...roles, keep: ({ uid }) => fit.has(uid) }).run(terminal, options)
  },
}

function namesIn(given: readonly string[]): string[] {
  return given.flatMap((text) => text.split(',')).map((text) => text.trim())
}

const usual = updateOf(roles)

/** The usual update command, with options that add and remove single capabilities. */
const rolesUpdate: Command = {
  ...usual,
  options: [
    { flags: '--add-capabilities <names>', summary: 'Capabilities to add, separated by commas', repeat: true },
    { flags: '--remove-capabilities <names>', summary: 'Capabilities to remove, separated by commas', repeat: true },
    ...usual.options,
  ],
  async run(terminal, options) {
    const [add, remove] = [options.addCapabilities, options.removeCapabilities].map((given) => {
      return namesIn((given ?? []) as string[])
    }) as [string[], string[]]
    if (add.length + remove.length === 0) return usual.run(terminal, options)
    if (options.capabilities !== undefined) {
      throw usageError(
        'nothing was changed: --capabilities replaces all capabilities, so it cannot be combined with --add-capabilities or --remove-capabilities',
      )
    }
    const api = await apiReader(terminal, options)
    const uid = await roles.find(api, String(options.which))
    // Version 1 of the API has the current capabilities as names, such as repo.list.
    const { items } = (await api.call('GET', `/iam/v1/roles?id=${encodeURIComponent(uid)}`)) as { items?: Old[] }
    const held = new Set([...(items?.[0]?.capabilities ?? []), ...add])
    for (const name of remove) held.delete(name)
    return usual.run(terminal, { ...options, which: uid, capabilities: [...held] })
  },
}

const listCapabilities = apiCommand({
  options: [
    {
      flags: '--actions <names>',
      summary: 'Only capabilities with these actions, separated by commas, such as list,create',
    },
    {
      flags: '--resources <names>',
      summary: 'Only capabilities of these resources, separated by commas, such as repo,tag',
    },
    outputOf(listFormats.filter((format) => format === 'table' || format === 'json')),
  ],
  async run(api, options) {
    const { items = [] } = (await api.call('GET', '/iam/v1/roles?uidp.in_root=true')) as { items?: Old[] }
    const [actions, resources] = [options.actions, options.resources].map((given) =>
      given === undefined ? undefined : String(given).split(','),
    )
    const names = [...new Set(items.flatMap(({ capabilities = [] }) => capabilities))].sort().filter((name) => {
      const at = name.lastIndexOf('.')
      return (actions?.includes(name.slice(at + 1)) ?? true) && (resources?.includes(name.slice(0, at)) ?? true)
    })
    return { json: { items: names.map((name) => ({ name })) }, text: names }
  },
})

export const roleCommands: Commands = {
  ...verbsOf(roles, { parentSpec: parentOption }),
  list: rolesList,
  update: rolesUpdate,
  'capabilities list': listCapabilities,
}
