import { type Command, outputOption } from '../framework/command.ts'
import { operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { sendRecords } from './import-batches.ts'
import { isJson, readRecords } from './import-files.ts'
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
    const read = await readRecords(options.path, isJson, (name, text) => {
      const file = readLibraries(name, text)
      if (options.output !== 'json') terminal.print(`${name}: ${file.packages} packages, ${file.versions} versions`)
      return file
    })
    return withOperator(terminal, options, (api) => sendRecords(terminal, options, api, importRules(), read))
  },
}
