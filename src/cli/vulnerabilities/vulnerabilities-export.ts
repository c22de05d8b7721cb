import { apiCommand } from '../framework/api-pages.ts'
import { type Coverage, digestOf, type Gap, sayGaps } from './scanned-image.ts'

export const vulnerabilitiesExport = apiCommand({
  details: `The document goes to standard output. What is accepted or suppressed is in it as such. What is not known of the image is in it
too, and is said on standard error.`,
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app:1.1 or acme/app@sha256:…' }],
  options: [
    {
      flags: '--format <format>',
      summary: 'cyclonedx (1.6, the default), openvex (0.2.0) or sarif (2.1.0)',
      choices: ['cyclonedx', 'openvex', 'sarif'],
    },
  ],
  async run(api, options, terminal) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/findings/${options.format ?? 'cyclonedx'}`
    const answer = (await api.call('GET', path)) as { document: string; gaps?: Gap[]; coverage?: Coverage }
    const { document, gaps = [], coverage } = answer
    terminal.print(document)
    sayGaps(terminal.say, gaps)
    if (coverage && coverage.unknownSeverity > 0) {
      terminal.say(`findings of unknown severity: ${coverage.unknownSeverity}`)
    }
  },
})
