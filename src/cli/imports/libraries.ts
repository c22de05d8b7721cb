import type { CommandGroup } from '../shape/command.ts'

export const libraries: CommandGroup = {
  name: 'libraries',
  summary: 'Libraries of Java and Python',
  commands: [
    {
      name: 'sync',
      summary: 'Take in what an index of Python packages or a Maven repository says of libraries',
      load: async () => (await import('./libraries-sync.ts')).librariesSync,
    },
  ],
}
