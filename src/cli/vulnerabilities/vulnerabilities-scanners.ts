// Commands for external scanners: their settings, and requests to scan an image.
import type { ListScannersResponseJson, ScannerJson } from '#gen/pinfold/control/scanning/v1/scanners_pb.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, outputOption } from '../framework/command.ts'
import { groupOf, namesOf } from '../framework/names.ts'
import { operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { secretIn } from '../framework/user-files.ts'
import { operatorCommand, readingDetails } from '../server/operator-command.ts'
import { digestOf } from './scanned-image.ts'

const nameArgument = { name: '<name>', summary: 'Name of the scanner, such as trivy' }

const list = operatorCommand({
  reads: true,
  details: `The exit code is 1 if a request to a scanner failed.\n\n${readingDetails}`,
  options: [...operatorOptions, outputOption],
  async run(api, options, { print }) {
    const { scanners = [] } = (await api.get('/control/v1/scanners')) as ListScannersResponseJson
    const none = 'no scanners are configured; add one with pinfold server scanners set NAME --url URL'
    if (options.output !== 'json') {
      const names = await namesOf(api, { groups: scanners.flatMap((one) => one.groups ?? []) })
      for (const line of scanners.flatMap((one) => linesOf(one, names.path))) print(line)
    }
    const code = scanners.some(({ problem }) => problem) ? exitCodes.failed : exitCodes.ok
    return { json: scanners, dense: true, text: scanners.length === 0 ? [none] : [], code }
  },
})

function linesOf(
  { name, url, onPush, groups = [], title, waiting = '0', problem = '' }: ScannerJson,
  path: (uid: string) => string,
): string[] {
  const when = onPush ? 'each push' : 'on request'
  const where = groups.length === 0 ? '' : ` in ${groups.map(path).join(', ')}`
  const what = plain(`${name}: ${title || 'not contacted yet'} at ${url}, ${when}${where}, ${waiting} waiting`)
  return problem === '' ? [what] : [what, `  ${plain(`failed: ${problem}`)}`]
}

const set: Command = {
  details: `The scanner must implement the pluggable scanner API of Harbor, like the adapters of Trivy, Clair and Anchore. It pulls each image
with a token for that repository, which is valid for 10 minutes. Private addresses need PINFOLD_SCANNERS_PRIVATE, and http
needs PINFOLD_ALLOW_INSECURE_SCANNERS. If the scanner exists, settings that are not given keep their values.

${operatorDetails}`,
  arguments: [nameArgument],
  options: [
    { flags: '--url <url>', summary: 'Base URL of the scanner: the part before /api/v1/metadata', required: true },
    {
      flags: '--credential-file <file>',
      summary:
        'File with "Bearer TOKEN", "Basic BASE64" or "X-ScannerAdapter-API-Key: KEY"; an empty file removes the credential',
    },
    {
      flags: '--registry-url <url>',
      summary: "URL of this registry for the scanner; '' for the URL of clients; default: the URL of clients",
    },
    {
      flags: '--in <group>',
      summary: 'Only images of this organization or folder; may be repeated',
      repeat: true,
      former: ['--group <group>'],
    },
    { flags: '--everywhere', summary: 'Images of all organizations; default for a new scanner' },
    { flags: '--on-push', summary: 'Scan every image that is pushed' },
    { flags: '--on-request', summary: 'Scan only on request, with pinfold images scan; default for a new scanner' },
    ...operatorOptions,
  ],
  async run(terminal, options) {
    const { name, url, in: group, everywhere, onPush, onRequest, credentialFile } = options
    if (group !== undefined && everywhere === true) throw oneOf('--in', '--everywhere')
    if (onPush === true && onRequest === true) throw oneOf('--on-push', '--on-request')
    const credential =
      credentialFile === undefined ? {} : { credential: secretIn(String(credentialFile), '--credential-file') }
    return withOperator(terminal, options, async (api) => {
      const given = (group ?? []) as readonly string[]
      const named = await Promise.all(given.map(async (one) => groupOf(api, one)))
      const { scanners = [] } = await api.get('/control/v1/scanners')
      const before = (scanners as ScannerJson[]).find((one) => one.name === name)
      const kept = everywhere === true ? [] : (before?.groups ?? [])
      const scanner = {
        ...{ name, url, ...credential },
        registryUrl: options.registryUrl ?? before?.registryUrl ?? '',
        groups: group === undefined ? kept : named,
        onPush: onRequest === true ? false : onPush === true || before?.onPush === true,
      }
      await api.post('/control/v1/scanners:put', { scanner })
      terminal.print(plain(`configured the scanner ${name}`))
      return exitCodes.ok
    })
  },
}

const oneOf = (one: string, other: string) =>
  usageError(`${one} and ${other} cannot be combined; give only one of them`)

const remove = operatorCommand({
  details: `The reports of the scanner remain.\n\n${operatorDetails}`,
  arguments: [nameArgument],
  options: operatorOptions,
  async run(api, options) {
    await api.post('/control/v1/scanners:remove', { name: options.name })
    return { text: `removed the scanner ${options.name}` }
  },
})

export const vulnerabilitiesScanners: Commands = { list, set, remove }

type Scan = { scanner: string; digest: string; problem?: string }

export const vulnerabilitiesScan = apiCommand({
  details: `Asks the external scanners to scan the image in the background. Findings from the data sources of the server need no such scan.
Needs the capability vuln_report.create in the repository. The exit code is 1 if no scanner is configured for the repository.`,
  arguments: [{ name: '<image>', summary: 'Image: acme/app:1.0 or acme/app@sha256:…; default tag: latest' }],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const { scans = [] } = await api.call('POST', `/registry/v2/repos/${repo}/digests/${digest}/scans`, {})
    const waiting = scans as Scan[]
    const isNone = waiting.length === 0
    const text = isNone
      ? 'no scanner is configured for this repository; pinfold server scanners set adds one'
      : waiting.map(lineOf)
    return { json: waiting, dense: true, text, code: isNone ? exitCodes.failed : exitCodes.ok }
  },
})

function lineOf({ scanner, digest, problem = '' }: Scan): string {
  return `${digest} waits for ${scanner}${problem === '' ? '' : `: ${problem}`}`
}
