import { existsSync, readFileSync } from 'node:fs'
import { CliError, type Command, exitCodes, outputOption } from '../shape/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../shape/operator.ts'
import { recordRules } from '../vulnerabilities/source-records.ts'
import { type ImportRecord, type Outcome, type Problem, sendRecords, sendSome } from './import-batches.ts'
import { inputFiles } from './import-files.ts'
import { type CommitTimes, readOsv } from './osv-json.ts'

export const importOsv: Command = {
  name: 'osv',
  summary: 'Take in descriptions of vulnerabilities in the OSV format',
  details: `Reads *.jsonl with a record in each line and *.json with one record, from a file, a folder or a tar archive, compressed
with gzip or not. Scores, also those of a package, and references become the metadata of the vulnerability, which
advisories find by their aliases, and images are compared with the packages that they name. NAME-commit-times.json beside NAME.jsonl stands in for times that are placeholders.
Running it again changes only what has changed. A record that is wrong is left out and named with its file and line; the
rest is taken in, and the exit code is 1.

${operatorDetails}`,
  arguments: [{ name: '<path...>', summary: 'Files, folders or tar archives' }],
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    const read = await readAll(options.path as readonly string[])
    const rules = {
      what: 'vulnerabilities',
      path: '/control/v1/vulnerabilities:import',
      request: (vulnerabilities: readonly object[]) => ({ vulnerabilities }),
      member: 'vulnerabilities',
    }
    return withOperator(terminal, options, async (api) => {
      const { records, known, problems } = read
      const refused = await sendKnown(api, known)
      return sendRecords(terminal, options, api, rules, { records, problems: [...problems, ...refused] })
    })
  },
}

const isOsv = (file: string) => /\.(?:jsonl(?:\.gz)?|json)$/.test(file) && !file.endsWith('-commit-times.json')

/**
 * What the records say of packages is a source of its own, of which an import takes nothing away. It counts as knowing no
 * ecosystem: that somebody imported one record of it does not mean that nothing else is known to be wrong there.
 */
async function sendKnown(api: OperatorApi, known: readonly ImportRecord[]): Promise<readonly Problem[]> {
  const unique = [...new Map(known.toReversed().map((one) => [one.id, one])).values()].reverse()
  if (unique.length === 0) return []
  const source = { name: 'import/osv', url: 'file:///', licence: 'unknown', ecosystems: [] }
  const { run } = await api.post('/control/v1/vulnerabilitySources:begin', { source })
  const outcome: Outcome = { counts: {}, refused: [] }
  await sendSome(api, recordRules(run), unique, outcome)
  await api.post('/control/v1/vulnerabilitySources:finish', { run, complete: false })
  return outcome.refused
}

async function readAll(paths: readonly string[]) {
  const records: ImportRecord[] = []
  const known: ImportRecord[] = []
  const problems: Problem[] = []
  for (const path of paths) {
    for await (const { name, path: onDisk, text } of inputFiles(path, isOsv)) {
      const file = readOsv(name, text, /\.jsonl(?:\.gz)?$/.test(name), commitTimesOf(onDisk))
      for (const one of file.records) records.push(one)
      for (const one of file.known) known.push(one)
      problems.push(...file.problems)
    }
  }
  return { records, known, problems }
}

function commitTimesOf(path: string): CommitTimes {
  const file = path.replace(/\.jsonl?(?:\.gz)?$/, '-commit-times.json')
  if (file === path || !existsSync(file)) return {}
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CommitTimes
  } catch (error) {
    throw new CliError(exitCodes.failed, `${file}: is not valid JSON`, error)
  }
}
