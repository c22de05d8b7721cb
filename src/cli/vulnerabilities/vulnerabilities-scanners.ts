// Scanners elsewhere, as the operator sets them up.
import { readFileSync } from 'node:fs'
import { CliError, type Command, type CommandGroup, exitCodes, outputOption } from '../shape/command.ts'
import { operatorDetails, operatorOptions, withOperator } from '../shape/operator.ts'
import { jsonText, plain } from '../shape/plain-text.ts'

type Scanner = {
  name: string
  url: string
  groups?: string[]
  onPush?: boolean
  title?: string
  askTime?: string
  problem?: string
  waiting?: string
}

const nameArgument = { name: '<name>', summary: 'What it is called here, such as trivy' }

const list: Command = {
  name: 'list',
  summary: 'Show the scanners, what waits for them and what went wrong',
  details: `The exit code is 1 when one could not be asked.\n\n${operatorDetails}`,
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    return withOperator(terminal, options, async (api) => {
      const { scanners = [] } = await api.get('/control/v1/scanners')
      const listed = scanners as Scanner[]
      if (options.output === 'json') terminal.print(jsonText(listed))
      else if (listed.length === 0) terminal.print('there is no scanner: see pinfold vulnerabilities scanners set')
      else for (const one of listed) for (const line of linesOf(one)) terminal.print(line)
      return listed.some(({ problem = '' }) => problem !== '') ? 1 : 0
    })
  },
}

function linesOf({ name, url, onPush, groups = [], title, waiting = '0', problem = '' }: Scanner): string[] {
  const when = onPush ? 'each push' : 'on request'
  const where = groups.length === 0 ? '' : ` in ${groups.join(', ')}`
  const what = plain(`${name}: ${title || 'not asked yet'} at ${url}, ${when}${where}, ${waiting} waiting`)
  return problem === '' ? [what] : [what, `  ${plain(`failed: ${problem}`)}`]
}

const set: Command = {
  name: 'set',
  summary: 'Set up a scanner, or say anew how it is',
  details: `The scanner has to speak the pluggable scanner API of Harbor, as the adapters of Trivy, Clair, Anchore and others do. It pulls
with a token that is good for the one repository and ten minutes. Private addresses need PINFOLD_SCANNERS_PRIVATE, and http
PINFOLD_ALLOW_INSECURE_SCANNERS.

${operatorDetails}`,
  arguments: [nameArgument],
  options: [
    { flags: '--url <url>', summary: 'Where it is: what stands before /api/v1/metadata', required: true },
    {
      flags: '--credential-file <file>',
      summary:
        'A file with "Bearer TOKEN", "Basic BASE64" or "X-ScannerAdapter-API-Key: KEY"; an empty one for none. As it was unless given',
    },
    { flags: '--registry-url <url>', summary: 'Where it reaches this registry; where clients do unless given' },
    { flags: '--group <uid>', summary: 'Only images of this group and below; may be repeated', repeat: true },
    { flags: '--on-push', summary: 'It looks at every image that is pushed' },
    ...operatorOptions,
  ],
  async run(terminal, options) {
    const { name, url, registryUrl, credentialFile } = options
    const scanner = {
      ...{ name, url, groups: options.group ?? [], onPush: options.onPush === true },
      ...(registryUrl === undefined ? {} : { registryUrl }),
      ...(credentialFile === undefined ? {} : { credential: textIn(String(credentialFile)) }),
    }
    return withOperator(terminal, options, async (api) => {
      await api.post('/control/v1/scanners:put', { scanner })
      terminal.print(plain(`${name} is set up`))
      return exitCodes.ok
    })
  },
}

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw new CliError(exitCodes.usage, `${file} cannot be read`)
  }
}

const remove: Command = {
  name: 'remove',
  summary: 'Remove a scanner, with what waits for it',
  details: `What it has reported stays.\n\n${operatorDetails}`,
  arguments: [nameArgument],
  options: operatorOptions,
  async run(terminal, options) {
    return withOperator(terminal, options, async (api) => {
      await api.post('/control/v1/scanners:remove', { name: options.name })
      terminal.print(plain(`${options.name} is removed`))
      return exitCodes.ok
    })
  },
}

export const vulnerabilitiesScanners: CommandGroup = {
  name: 'scanners',
  summary: 'Scanners elsewhere that look at images',
  commands: [list, set, remove],
}
