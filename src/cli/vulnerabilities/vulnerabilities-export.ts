import type { ExportedFindingsJson } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { digestOf, printGaps } from './scanned-image.ts'

export const vulnerabilitiesExport = apiCommand({
  details: `Prints the document to standard output. It includes ignored findings and accepted risks, marked as such, and the coverage gaps of
the image. The coverage gaps are also listed on standard error.`,
  arguments: [{ name: '<image>', summary: 'Image: acme/team/app:1.1 or acme/app@sha256:…' }],
  options: [
    {
      flags: '--format <format>',
      summary: 'Document format: cyclonedx (1.6), openvex (0.2.0) or sarif (2.1.0); default: cyclonedx',
      choices: ['cyclonedx', 'openvex', 'sarif'],
    },
  ],
  async run(api, options, terminal) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/findings/${options.format ?? 'cyclonedx'}`
    const { document = '', gaps = [], coverage } = (await api.call('GET', path)) as ExportedFindingsJson
    terminal.print(document)
    printGaps(terminal.say, gaps)
    if (coverage?.unknownSeverity) terminal.say(`findings of unknown severity: ${coverage.unknownSeverity}`)
  },
})
