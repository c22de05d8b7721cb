import type { CommandGroup } from './command.ts'
import { importTagHistory } from './import-tag-history.ts'

export const imports: CommandGroup = {
  name: 'import',
  summary: 'Fill the server from files',
  commands: [importTagHistory],
}
