import type { Command } from '../framework/command.ts'
import { outputOption } from '../framework/command.ts'
import { operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { type ImportRecord, type Problem, sendRecords } from './import-batches.ts'
import { inputFiles } from './import-files.ts'
import { importRules } from './library-record.ts'

export const importLibraries: Command = {
  details: `A file has the libraries of one ecosystem: {"ecosystem": "python", "packages": [...]}. A package of python has a name, one
of java a groupId and an artifactId, and perhaps a title; both have versions, each a text or an object with what is
known of it (version, files, size, uploadTime, releaseTime or firstSeenTime). What several files know is joined, and running
it again changes only what has changed in the files. A package that is wrong is left out and named with its file, line and
field; the rest is taken in, and the exit code is 1.

${operatorDetails}`,
  arguments: [{ name: '<path...>', summary: 'Files, folders or tar archives' }],
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    const { readLibraries } = await import('./library-files.ts')
    const records: ImportRecord[] = []
    const problems: Problem[] = []
    for (const path of options.path as readonly string[]) {
      for await (const { name, text } of inputFiles(path, (file) => /\.json(?:\.gz)?$/.test(file))) {
        const file = readLibraries(name, text)
        records.push(...file.records)
        problems.push(...file.problems)
        if (options.output !== 'json') terminal.print(`${name}: ${file.packages} packages, ${file.versions} versions`)
      }
    }
    return withOperator(terminal, options, (api) => {
      return sendRecords(terminal, options, api, importRules(), { records, problems })
    })
  },
}
