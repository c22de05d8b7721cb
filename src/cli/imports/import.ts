import type { CommandGroup } from '../shape/command.ts'
import { importAdvisories } from './import-advisories.ts'
import { importLibraries } from './import-libraries.ts'
import { importOsv } from './import-osv.ts'
import { importTagHistory } from './import-tag-history.ts'

export const imports: CommandGroup = {
  name: 'import',
  summary: 'Fill the server from files',
  commands: [importAdvisories, importLibraries, importOsv, importTagHistory],
}
