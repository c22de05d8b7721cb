import type { CommandGroup } from '../shape/command.ts'

export const vulnerabilities: CommandGroup = {
  name: 'vulnerabilities',
  summary: 'What is known of vulnerabilities, and from where',
  commands: [
    {
      name: 'verify',
      summary: 'Compare all packages anew, and name what is stored and does not follow from it',
      load: async () => (await import('./vulnerabilities-verify.ts')).vulnerabilitiesVerify,
    },
  ],
}
