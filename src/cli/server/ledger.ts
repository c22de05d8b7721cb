import { findDeletedImage } from '../registry/deleted-images.ts'
import { CliError, type Command, type CommandGroup, exitCodes } from '../shape/command.ts'
import { operatorDetails, operatorOptions, withOperator } from '../shape/operator.ts'

const erase: Command = {
  name: 'erase',
  summary: 'Erase the history of a deleted repository for good',
  details: `The history of a repository outlives it; this is the one way to get rid of it. It is written into the audit log. A
repository that is there must be deleted first. Without --yes it only says what would be erased.
${operatorDetails}`,
  arguments: [{ name: '<repository>', summary: 'The path that it had, such as acme/team/app, or its uid' }],
  options: [...operatorOptions, { flags: '--yes', summary: 'Erase it' }],
  async run(terminal, options) {
    const name = String(options.repository)
    return withOperator(terminal, options, async (api) => {
      // As many as one path can have had and still be told apart by hand.
      const found = await findDeletedImage(async <T>(path: string, member: string, query: object) => {
        const asked = new URLSearchParams({ ...query, page_size: '200' })
        const body = await api.get(`${path}?${asked}`)
        return { items: (body[member] ?? []) as T[], more: false }
      }, name)
      if (!found) throw new CliError(exitCodes.failed, `there is no deleted repository ${name}`)
      const about = `${name}, deleted on ${found.deleteTime}`
      if (options.yes !== true) {
        throw new CliError(exitCodes.usage, `this would erase the history of ${about}; --yes does it`)
      }
      const { paths, records } = await api.post('/control/v1/ledgers:erase', { repoUid: found.uid })
      terminal.print(`erased ${records} records of ${(paths as string[]).join(', ')}`)
      return exitCodes.ok
    })
  },
}

export const ledger: CommandGroup = {
  name: 'ledger',
  summary: 'The history of tags, for those who run the server',
  commands: [erase],
}
