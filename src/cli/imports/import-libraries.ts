import type { Command } from '../framework/command.ts'
import { outputOption } from '../framework/command.ts'
import { operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { type ImportRecord, type Problem, sendRecords } from './import-batches.ts'
import { inputFiles } from './import-files.ts'
import { importRules } from './library-record.ts'

export const importLibraries: Command = {
  details: `A file contains the libraries of one ecosystem: {"ecosystem": "python", "packages": [...]}. A Python package has a name. A Java
package has a groupId, an artifactId and optionally a title. Both have versions: a version is a string, or an object with
version, files, size, uploadTime, releaseTime or firstSeenTime.
The data of several files is merged. A second import changes only what has changed in the files.
Invalid packages are left out and listed with file, line and field; the others are imported, and the exit code is 1.

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
