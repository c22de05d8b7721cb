import { existsSync, readFileSync } from 'node:fs'
import { schemeOf } from '#versions/order.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption } from '../framework/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { recordRules } from '../vulnerabilities/vulnerabilities-sync.ts'
import { type ImportRecord, type Outcome, type Problem, sendRecords, sendSome } from './import-batches.ts'
import { readRecords } from './import-files.ts'
import { type CommitTimes, readOsv } from './osv-json.ts'

export const importOsv: Command = {
  details: `Reads *.jsonl with a record in each line, and *.json with one record, from a file, a folder or a tar archive. Each can be compressed
with gzip. Scores and references become the metadata of the vulnerability. Packages in images are compared with the records.
If NAME-commit-times.json is beside NAME.jsonl, its times replace placeholder times.
A second import changes only what has changed. Invalid records are left out and listed with file and line; the others are
imported, and the exit code is 1.
An import is usually not complete, so its ecosystems keep their coverage gaps. If the files contain all records of an ecosystem,
name it with --covers. The import is then a data source of this ecosystem, and a record that is missing in a later import counts as
withdrawn.
Each set of ecosystems is a separate data source, so give the same ones each time.

${operatorDetails}`,
  arguments: [{ name: '<path...>', summary: 'Files, folders or tar archives' }],
  options: [
    {
      flags: '--covers <ecosystem>',
      summary: 'Ecosystem of which the files contain all records, such as PyPI; may be repeated',
      repeat: true,
    },
    ...operatorOptions,
    outputOption,
  ],
  async run(terminal, options) {
    const covers = coveredBy(options)
    const known: ImportRecord[] = []
    const { records, problems } = await readRecords(options.path, isOsv, (name, text, path) => {
      const file = readOsv(name, text, /\.jsonl(?:\.gz)?$/.test(name), commitTimesOf(path))
      for (const one of file.known) known.push(one)
      return file
    })
    const rules = {
      what: 'vulnerabilities',
      path: '/control/v1/vulnerabilities:import',
      request: (vulnerabilities: readonly object[]) => ({ vulnerabilities }),
      member: 'vulnerabilities',
    }
    return withOperator(terminal, options, async (api) => {
      const refused = await sendKnown(api, known, { covers, wrong: problems.length })
      return sendRecords(terminal, options, api, rules, { records, problems: [...problems, ...refused] })
    })
  },
}

const isOsv = (file: string) => /\.(?:jsonl(?:\.gz)?|json)$/.test(file) && !file.endsWith('-commit-times.json')

const mostCovered = 20

/** Ecosystems that the imported records cover completely, according to the user. */
function coveredBy({ covers = [] }: Options): string[] {
  const named = [...new Set(covers as readonly string[])].sort()
  const isName = (one: string) => /^[A-Za-z][\w .:()-]{0,63}$/.test(one)
  if (named.length > mostCovered || !named.every(isName)) {
    throw usageError(`--covers must be the name of an ecosystem such as PyPI, at most ${mostCovered} times`)
  }
  // Records of an unsupported ecosystem are never compared with an image.
  const other = named.find((one) => schemeOf(one) === undefined)
  if (other !== undefined) {
    throw usageError(
      `--covers: ${other} is not a supported ecosystem, so no image would be compared with its records; leave it out`,
    )
  }
  return named
}

/**
 * Sends the statements about packages in the records as one data source. An import never deletes earlier records of the source.
 * The source covers only the ecosystems that `--covers` names: one record of an ecosystem does not mean that the ecosystem has no
 * other vulnerabilities.
 */
async function sendKnown(
  api: OperatorApi,
  known: readonly ImportRecord[],
  { covers, wrong }: { covers: readonly string[]; wrong: number },
): Promise<readonly Problem[]> {
  const unique = [...new Map(known.toReversed().map((one) => [one.id, one])).values()].reverse()
  if (unique.length === 0) return []
  const name = covers.length === 0 ? 'import/osv' : `import/osv/${covers.join('+')}`
  const source = { name, url: 'file:///', licence: 'unknown', ecosystems: covers }
  const { run } = await api.post('/control/v1/vulnerabilitySources:begin', { source })
  const outcome: Outcome = { counts: {}, refused: [] }
  await sendSome(api, recordRules(run), unique, outcome)
  const problems = wrong + outcome.refused.length
  // If a record was left out, the source must not count as completely read.
  const error =
    covers.length > 0 && problems > 0 ? `${problems} ${problems === 1 ? 'problem' : 'problems'} in the files` : ''
  const complete = covers.length > 0 && problems === 0
  await api.post('/control/v1/vulnerabilitySources:finish', { run, complete, error })
  return outcome.refused
}

function commitTimesOf(path: string): CommitTimes {
  const file = path.replace(/\.jsonl?(?:\.gz)?$/, '-commit-times.json')
  if (file === path || !existsSync(file)) return {}
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CommitTimes
  } catch (error) {
    throw failure(`${file}: is not valid JSON`, error)
  }
}
