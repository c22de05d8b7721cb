// External scanners: their settings, and requests to scan an image.
import { readFileSync } from 'node:fs'
import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, outputOption } from '../framework/command.ts'
import { groupOf, namesOf } from '../framework/names.ts'
import { listsOf, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { jsonText, plain } from '../framework/plain-text.ts'
import { readingDetails, withReadingOperator } from '../server/reading-operator.ts'
import { digestOf } from './scanned-image.ts'

type Scanner = {
  name: string
  url: string
  groups?: string[]
  onPush?: boolean
  title?: string
  askTime?: string
  problem?: string
  waiting?: string
  registryUrl?: string
}

const nameArgument = { name: '<name>', summary: 'What it is called here, such as trivy' }

const list: Command = {
  details: `The exit code is 1 when one could not be asked.\n\n${readingDetails}`,
  options: [...operatorOptions, outputOption],
  async run(terminal, options) {
    return withReadingOperator(terminal, options, async (api) => {
      const { scanners = [] } = await api.get('/control/v1/scanners')
      const listed = scanners as Scanner[]
      if (options.output === 'json') terminal.print(jsonText(listed))
      else if (listed.length === 0) terminal.print('there is no scanner: see pinfold vulnerabilities scanners set')
      else {
        const names = await namesOf(
          listsOf(api),
          listed.flatMap(({ groups = [] }) => groups),
          [],
        )
        for (const one of listed) for (const line of linesOf(one, names.path)) terminal.print(line)
      }
      return listed.some(({ problem = '' }) => problem !== '') ? 1 : 0
    })
  },
}

function linesOf(
  { name, url, onPush, groups = [], title, waiting = '0', problem = '' }: Scanner,
  path: (uid: string) => string,
): string[] {
  const when = onPush ? 'each push' : 'on request'
  const where = groups.length === 0 ? '' : ` in ${groups.map(path).join(', ')}`
  const what = plain(`${name}: ${title || 'not asked yet'} at ${url}, ${when}${where}, ${waiting} waiting`)
  return problem === '' ? [what] : [what, `  ${plain(`failed: ${problem}`)}`]
}

const set: Command = {
  details: `The scanner has to speak the pluggable scanner API of Harbor, as the adapters of Trivy, Clair, Anchore and others do. It pulls
with a token that is good for the one repository and ten minutes. Private addresses need PINFOLD_SCANNERS_PRIVATE, and http
PINFOLD_ALLOW_INSECURE_SCANNERS. Of a scanner that is there, what no option says stays as it was.

${operatorDetails}`,
  arguments: [nameArgument],
  options: [
    { flags: '--url <url>', summary: 'Where it is: what stands before /api/v1/metadata', required: true },
    {
      flags: '--credential-file <file>',
      summary: 'A file with "Bearer TOKEN", "Basic BASE64" or "X-ScannerAdapter-API-Key: KEY"; an empty one for none',
    },
    { flags: '--registry-url <url>', summary: "Where it reaches this registry; '' for where clients do, as at first" },
    { flags: '--group <group>', summary: 'Only images of this group and below; may be repeated', repeat: true },
    { flags: '--everywhere', summary: 'Images of all groups, as at first' },
    { flags: '--on-push', summary: 'It looks at every image that is pushed' },
    { flags: '--on-request', summary: 'It looks only at what somebody asks it to, as at first' },
    ...operatorOptions,
  ],
  async run(terminal, options) {
    const { name, url, group, everywhere, onPush, onRequest, credentialFile } = options
    if (group !== undefined && everywhere === true) throw oneOf('--group', '--everywhere')
    if (onPush === true && onRequest === true) throw oneOf('--on-push', '--on-request')
    const credential = credentialFile === undefined ? {} : { credential: textIn(String(credentialFile)) }
    return withOperator(terminal, options, async (api) => {
      const given = (group ?? []) as readonly string[]
      const named = await Promise.all(given.map((one) => groupOf(listsOf(api), one)))
      const { scanners = [] } = await api.get('/control/v1/scanners')
      const before = (scanners as Scanner[]).find((one) => one.name === name)
      const kept = everywhere === true ? [] : (before?.groups ?? [])
      const scanner = {
        ...{ name, url, ...credential },
        registryUrl: options.registryUrl ?? before?.registryUrl ?? '',
        groups: group === undefined ? kept : named,
        onPush: onRequest === true ? false : onPush === true || before?.onPush === true,
      }
      await api.post('/control/v1/scanners:put', { scanner })
      terminal.print(plain(`${name} is set up`))
      return exitCodes.ok
    })
  },
}

const oneOf = (one: string, other: string) => usageError(`${one} and ${other} exclude each other`)

function textIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw usageError(`${file} cannot be read`)
  }
}

const remove: Command = {
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

export const vulnerabilitiesScanners: Commands = { list, set, remove }

type Scan = { scanner: string; digest: string; problem?: string }

export const vulnerabilitiesScan = apiCommand({
  details: `What is known of packages needs no scan. Their reports come in the background, beside those that were handed in. It takes
the capability vuln_report.create in the repo. The exit code is 1 where no scanner looks at it.`,
  arguments: [{ name: '<image>', summary: 'acme/app:1.0 or acme/app@sha256:…' }],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const { scans = [] } = await api.call('POST', `/registry/v2/repos/${repo}/digests/${digest}/scans`, {})
    const waiting = scans as Scan[]
    const isNone = waiting.length === 0
    const text = isNone ? 'no scanner looks at images there' : waiting.map(lineOf)
    return { json: waiting, dense: true, text, code: isNone ? exitCodes.failed : exitCodes.ok }
  },
})

function lineOf({ scanner, digest, problem = '' }: Scan): string {
  return `${digest} waits for ${scanner}${problem === '' ? '' : `: ${problem}`}`
}
