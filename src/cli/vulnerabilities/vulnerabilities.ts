import type { CommandGroup } from '../shape/command.ts'

export const vulnerabilities: CommandGroup = {
  name: 'vulnerabilities',
  summary: 'What is known of vulnerabilities, and from where',
  commands: [
    {
      name: 'sync',
      summary: 'Take in what sources of vulnerabilities say now',
      load: async () => (await import('./vulnerabilities-sync.ts')).vulnerabilitiesSync,
    },
    {
      name: 'pack',
      summary: 'Make one artifact of what sources of vulnerabilities say, for sync --from',
      load: async () => (await import('./vulnerabilities-pack.ts')).vulnerabilitiesPack,
    },
    {
      name: 'status',
      summary: 'Show the sources of vulnerabilities, how old they are and what went wrong',
      load: async () => (await import('./vulnerabilities-status.ts')).vulnerabilitiesStatus,
    },
    {
      name: 'verify',
      summary: 'Compare all packages anew, and name what is stored and does not follow from it',
      load: async () => (await import('./vulnerabilities-verify.ts')).vulnerabilitiesVerify,
    },
    {
      name: 'images',
      summary: 'List the images that have a vulnerability, with the tags that point to them now',
      load: async () => (await import('./vulnerabilities-images.ts')).vulnerabilitiesImages,
    },
    {
      name: 'images-with',
      summary: 'List the images that contain a package, with the tags that point to them now',
      load: async () => (await import('./vulnerabilities-images-with.ts')).vulnerabilitiesImagesWith,
    },
    {
      name: 'packages',
      summary: 'List the packages of an image',
      load: async () => (await import('./vulnerabilities-packages.ts')).vulnerabilitiesPackages,
    },
    {
      name: 'risks',
      summary: 'Risks that somebody has accepted',
      load: async () => (await import('./vulnerabilities-risks.ts')).vulnerabilitiesRisks,
    },
    {
      name: 'vex',
      summary: 'What others say was made of the vulnerabilities in an image',
      load: async () => (await import('./vulnerabilities-vex.ts')).vulnerabilitiesVex,
    },
    {
      name: 'gates',
      summary: 'What has to be so of what is pulled',
      load: async () => (await import('./vulnerabilities-gates.ts')).vulnerabilitiesGates,
    },
    {
      name: 'scanners',
      summary: 'Scanners elsewhere that look at images',
      load: async () => (await import('./vulnerabilities-scanners.ts')).vulnerabilitiesScanners,
    },
    {
      name: 'scan',
      summary: 'Have the scanners that the operator has set up look at an image',
      load: async () => (await import('./vulnerabilities-scan.ts')).vulnerabilitiesScan,
    },
    {
      name: 'export',
      summary: 'Write what is found in an image as CycloneDX, OpenVEX or SARIF',
      load: async () => (await import('./vulnerabilities-export.ts')).vulnerabilitiesExport,
    },
    {
      name: 'compare',
      summary: 'Show what differs between two images, in packages and in vulnerabilities',
      load: async () => (await import('./vulnerabilities-compare.ts')).vulnerabilitiesCompare,
    },
  ],
}
