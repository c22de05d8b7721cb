import { exitCodes, failure, usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { organizationOf } from '../framework/names.ts'
import { listsOf, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { findDeletedImage } from '../registry/deleted-images.ts'

const erase: Command = {
  details: `The history of a repository outlives it; this is the one way to get rid of it. It is written into the audit log. A
repository that is there must be deleted first. Without --yes it only says what would be erased.
${operatorDetails}`,
  arguments: [{ name: '<repository>', summary: 'The path that it had, such as acme/team/app, or its uid' }],
  options: [...operatorOptions, { flags: '--yes', summary: 'Erase it' }],
  async run(terminal, options) {
    const name = String(options.repository)
    return withOperator(
      terminal,
      options,
      async (api) => {
        // The most deleted repositories of one path that a user can tell apart.
        const found = await findDeletedImage(async <T>(path: string, member: string, query: object) => {
          const asked = new URLSearchParams({ ...query, page_size: '200' })
          const body = await api.get(`${path}?${asked}`)
          return { items: (body[member] ?? []) as T[], more: false }
        }, name)
        if (!found) throw failure(`there is no deleted repository ${name}`)
        const about = `${name}, deleted on ${found.deleteTime}`
        if (options.yes !== true) {
          throw usageError(`this would erase the history of ${about}; --yes does it`)
        }
        const { paths, records } = await api.post('/control/v1/ledgers:erase', { repoUid: found.uid })
        terminal.print(`erased ${records} records of ${(paths as string[]).join(', ')}`)
        return exitCodes.ok
      },
      { served: true },
    )
  },
}

const resume: Command = {
  details: `Signing stops for a log if a witness or the stored checkpoint has more entries than the database. If a failover or a
restore caused this, run pinfold restored instead. This command ends the log;
the next one has another origin and another key, names the last head that is known, and has all rows of the ledger.
${operatorDetails}`,
  options: [...operatorOptions, { flags: '--yes', summary: 'Do it' }],
  async run(terminal, options) {
    if (options.yes !== true) {
      throw usageError('whoever has a policy of these logs needs a new one afterwards; --yes does it')
    }
    return withOperator(terminal, options, async (api) => {
      const { logs } = await api.post('/control/v1/ledgerLogs:resume', {})
      terminal.print(`ended ${logs ?? 0} logs; others take their places`)
      return exitCodes.ok
    })
  },
}

const rotateKey: Command = {
  details: `Whoever checks proofs needs the new policy before these days are over; an entry of the log names the key, too.
${operatorDetails}`,
  arguments: [{ name: '<organisation>', summary: 'Its name or its uid' }],
  options: operatorOptions,
  async run(terminal, options) {
    return withOperator(terminal, options, async (api) => {
      const body = { organizationUid: await organizationOf(listsOf(api), String(options.organisation)) }
      terminal.print(String((await api.post('/control/v1/ledgerLogs:rotateKey', body)).key))
      return exitCodes.ok
    })
  },
}

export const ledger: Commands = { erase, resume, 'rotate-key': rotateKey }
