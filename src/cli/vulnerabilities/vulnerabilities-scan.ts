import { apiReader, callerOptions } from '../shape/api-pages.ts'
import { type Command, exitCodes, outputOption } from '../shape/command.ts'
import { jsonText, plain } from '../shape/plain-text.ts'
import { digestOf } from './scanned-image.ts'

type Scan = { scanner: string; digest: string; problem?: string }

export const vulnerabilitiesScan: Command = {
  details: `What is known of packages needs no scan. Their reports come in the background, beside those that were handed in. It takes
the capability vuln_report.create in the repo. The exit code is 1 where no scanner looks at it.`,
  arguments: [{ name: '<image>', summary: 'acme/app:1.0 or acme/app@sha256:…' }],
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { repo, digest } = await digestOf(api, String(options.image))
    const { scans = [] } = await api.call('POST', `/registry/v2/repos/${repo}/digests/${digest}/scans`, {})
    const waiting = scans as Scan[]
    if (options.output === 'json') terminal.print(jsonText(waiting))
    else if (waiting.length === 0) terminal.print('no scanner looks at images there')
    else for (const one of waiting) terminal.print(plain(lineOf(one)))
    return waiting.length === 0 ? exitCodes.failed : exitCodes.ok
  },
}

function lineOf({ scanner, digest, problem = '' }: Scan): string {
  return `${digest} waits for ${scanner}${problem === '' ? '' : `: ${problem}`}`
}
