import type { CommandGroup } from '../shape/command.ts'

export const imports: CommandGroup = {
  name: 'import',
  summary: 'Fill the server from files',
  commands: [
    {
      name: 'advisories',
      summary: 'Take in security advisories from YAML files',
      load: async () => (await import('./import-advisories.ts')).importAdvisories,
    },
    {
      name: 'libraries',
      summary: 'Take in libraries and their versions from JSON files',
      load: async () => (await import('./import-libraries.ts')).importLibraries,
    },
    {
      name: 'lifecycles',
      summary: 'Take in when products reach their end of life',
      load: async () => (await import('./import-lifecycles.ts')).importLifecycles,
    },
    {
      name: 'osv',
      summary: 'Take in descriptions of vulnerabilities in the OSV format',
      load: async () => (await import('./import-osv.ts')).importOsv,
    },
    {
      name: 'scan-report',
      summary: 'Take in what another scanner has found in an image',
      load: async () => (await import('./import-scan-report.ts')).importScanReport,
    },
    {
      name: 'tag-history',
      summary: 'Take in what tags pointed to elsewhere, with their times',
      load: async () => (await import('./import-tag-history.ts')).importTagHistory,
    },
  ],
}
