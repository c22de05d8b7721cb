import type { CommandGroup } from '../shape/command.ts'
import { librariesSync } from './libraries-sync.ts'

export const libraries: CommandGroup = {
  name: 'libraries',
  summary: 'Libraries of Java and Python',
  commands: [librariesSync],
}
