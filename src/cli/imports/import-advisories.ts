import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { groupOf } from '../framework/names.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { configOf } from '../framework/settings.ts'
import { readAdvisories } from './advisory-yaml.ts'
import { sendRecords } from './import-batches.ts'
import { readRecords } from './import-files.ts'

export const importAdvisories: Command = {
  details: `A file contains the advisories of one package. A folder or a tar archive can contain any number of *.advisories.yaml files. Ids and
times are kept, and the events count as approved. A second import changes only what has changed in the files.
Invalid records are left out and listed with file and line; the others are imported, and the exit code is 1.

${operatorDetails}`,
  arguments: [{ name: '<path...>', summary: 'Files, folders or tar archives' }],
  options: [
    ...operatorOptions,
    {
      flags: '--in <group>',
      summary: 'Group of the advisories: ORG, ORG/FOLDER or a uid; default: the public organization',
      former: ['--group <group>'],
    },
    { flags: '--author <name>', summary: 'Author of the advisories and their events; default: import' },
    outputOption,
  ],
  async run(terminal, options) {
    const author = (options.author as string | undefined) ?? 'import'
    const isFile = (name: string) => /\.advisories\.ya?ml(?:\.gz)?$/.test(name)
    const read = await readRecords(options.path, isFile, (name, text) => readAdvisories(name, text, author))
    return withOperator(terminal, options, async (api) => {
      const parent = await groupFor(terminal, options, api)
      const rules = {
        what: 'advisories',
        path: '/control/v1/advisories:import',
        request: (advisories: readonly object[]) => ({ parent, advisories }),
        member: 'advisories',
      }
      return sendRecords(terminal, options, api, rules, read)
    })
  },
}

/** Without `--in`, advisories are imported to the public organization, since everybody can see it. */
export async function groupFor(terminal: Terminal, options: Options, api: OperatorApi): Promise<string> {
  if (typeof options.in === 'string') return groupOf(api, options.in)
  const name = configOf(terminal, options).publicOrg
  const { items } = await api.list<{ uid: string }>('/iam/v2/groups', 'groups', { 'uidp.in_root': 'true', name }, 1)
  if (items[0]) return items[0].uid
  const description = 'Data that everybody can see'
  return String((await api.post('/iam/v2/groups/', { name, description })).uid)
}
