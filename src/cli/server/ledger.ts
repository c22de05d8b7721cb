import { failure, usageError } from '../framework/cli-error.ts'
import type { Commands } from '../framework/command.ts'
import { organizationOf } from '../framework/names.ts'
import { operatorDetails, operatorOptions } from '../framework/operator.ts'
import { findDeletedImage } from '../registry/deleted-images.ts'
import { operatorCommand } from './operator-command.ts'

const erase = operatorCommand({
  served: true,
  details: `The tag history of a repository remains after the deletion of the repository. This command erases it permanently, and writes an entry
to the audit log. Delete the repository first, with pinfold repos delete. Without --yes, only shows what would be erased.
${operatorDetails}`,
  arguments: [
    { name: '<repository>', summary: 'Deleted repository: its former path, such as acme/team/app, or its uid' },
  ],
  options: [...operatorOptions, { flags: '--yes', summary: 'Erase the history' }],
  async run(api, options) {
    const name = String(options.repository)
    const found = await findDeletedImage(api.list, name)
    if (!found)
      throw failure(
        `no deleted repository ${name} was found; delete the repository first: pinfold repos delete ${name}`,
      )
    const about = `${name}, deleted on ${found.deleteTime}`
    if (options.yes !== true) {
      throw usageError(`nothing was erased: this would erase the tag history of ${about}; give --yes to do it`)
    }
    const { paths, records } = await api.post('/control/v1/ledgers:erase', { repoUid: found.uid })
    return { text: `erased ${records} history records of ${(paths as string[]).join(', ')}` }
  },
})

const resume = operatorCommand({
  details: `A transparency log stops if a witness or its stored checkpoint has more entries than the database. If a failover or a restore caused
this, run pinfold server complete-restore instead.
This command ends the stopped logs, and starts new ones with another origin and another key. A new log contains the last known
checkpoint of the old one, and the whole tag history.
${operatorDetails}`,
  options: [...operatorOptions, { flags: '--yes', summary: 'Replace the stopped logs' }],
  check({ yes }) {
    if (yes === true) return
    throw usageError(
      'nothing was changed: afterwards, everybody who verifies proofs needs the new public keys (pinfold tags proof-policy); give --yes to replace the logs',
    )
  },
  async run(api) {
    const { logs } = await api.post('/control/v1/ledgerLogs:resume', {})
    return { text: `replaced ${logs ?? 0} transparency logs` }
  },
})

const rotateKey = operatorCommand({
  details: `Prints the new public key. The former key also signs for 30 days. Everybody who verifies proofs needs the new public keys before
then; pinfold tags proof-policy prints them. An entry of the log names the new key too.
${operatorDetails}`,
  arguments: [{ name: '<organization>', summary: 'Organization: its name or its uid' }],
  options: operatorOptions,
  async run(api, options) {
    const organizationUid = await organizationOf(api, String(options.organization))
    const { key } = await api.post('/control/v1/ledgerLogs:rotateKey', { organizationUid })
    return { text: String(key) }
  },
})

export const ledger: Commands = { erase, resume, 'rotate-key': rotateKey }
