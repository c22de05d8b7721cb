import type { CommandGroup } from './command.ts'

export const imports: CommandGroup = {
  name: 'import',
  summary: 'Fill the server from files',
  commands: [],
}
