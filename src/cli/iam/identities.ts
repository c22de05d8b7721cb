import type { CommandGroup } from '../shape/command.ts'
import { identitiesCheck } from './identities-check.ts'

export const identities: CommandGroup = {
  name: 'identities',
  summary: 'Work with identities',
  commands: [identitiesCheck],
}
