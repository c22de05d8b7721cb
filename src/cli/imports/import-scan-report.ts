import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { isDigest } from '#lib/digest.ts'
import { apiReader, callerOptions } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { jsonText, plain } from '../framework/plain-text.ts'
import { registryOf } from '../framework/session.ts'
import { findImage, findTag, imageNameOf } from '../registry/image-names.ts'

const maxBytes = 32 * 2 ** 20
const waitMs = 60_000
const betweenMs = 250

type Report = { id: string; state: string; reason?: string; message?: string; tool?: string; vulnerabilities?: number }

export const importScanReport: Command = {
  details: `Reads the JSON of Grype or Trivy, CycloneDX that names vulnerabilities, SARIF (of which only the ids and how bad they
are count), OpenVEX, or VEX in CSAF, in a signed envelope or not, compressed with gzip or not. Reports of version 1 show it from then on, beside what the server finds itself. It takes
the capability vuln_report.create in the repo. Waits until the report was read, and exits with 1 when it cannot be.`,
  arguments: [{ name: '<file>', summary: 'The report, or - for standard input' }],
  options: [
    { flags: '--image <ref>', summary: 'The image: acme/app:tag or acme/app@sha256:…' },
    ...callerOptions,
    outputOption,
  ],
  async run(terminal, options) {
    if (!options.image) throw usageError('name the image with --image, such as acme/app:1.2')
    const report = await contentOf(String(options.file))
    const api = await apiReader(terminal, options)
    const { repo, digest } = await imageAt(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/scanReports`
    const packed = await promisify(gzip)(report)
    const sent = (await api.call('POST', path, { report: packed.toString('base64') })) as unknown as Report
    const read = await readReport(api, path, sent)
    if (options.output === 'json') terminal.print(jsonText(read, 2))
    else terminal.print(plain(sentence(read)))
    return read.state === 'ignored' && read.reason !== 'SAME' ? exitCodes.failed : exitCodes.ok
  },
}

async function contentOf(file: string): Promise<Buffer> {
  if (file === '-') {
    const { buffer } = await import('node:stream/consumers')
    return buffer(process.stdin)
  }
  const found = await stat(file).catch((error: Error) => {
    throw usageError(`${file} cannot be read: ${error.message}`)
  })
  if (!found.isFile()) throw usageError(`${file} is no file`)
  if (found.size > maxBytes) throw usageError(`${file} has more than ${maxBytes} bytes`)
  return readFile(file)
}

async function imageAt(api: ApiReader, ref: string): Promise<{ repo: string; digest: string }> {
  const [name = '', given] = ref.split('@')
  const { path, tag } = imageNameOf(name, registryOf(api.session))
  const repo = await findImage(api, path)
  if (given !== undefined) {
    if (!isDigest(given)) throw usageError(`${given} is no digest`)
    return { repo, digest: given }
  }
  const wanted = tag ?? 'latest'
  const digest = (await findTag(api, repo, wanted))?.digest
  if (!digest) throw failure(`${path} has no tag ${wanted}`)
  return { repo, digest }
}

/** The report once it was read, or as it is when that takes too long. */
async function readReport(api: ApiReader, path: string, sent: Report): Promise<Report> {
  for (const until = Date.now() + waitMs; Date.now() < until; await sleep(betweenMs)) {
    const { reports = [] } = (await api.call('GET', path).catch(() => ({}))) as { reports?: Report[] }
    const now = reports.find(({ id }) => id === sent.id)
    // A caller who is allowed to send reports may not be allowed to see them.
    if (!now) return sent
    if (now.state !== 'waiting') return now
  }
  return sent
}

function sentence({ state, reason, message = '', tool = '', vulnerabilities = 0 }: Report): string {
  if (state === 'waiting') return 'the report was taken in and waits to be read'
  if (state === 'stated') return 'the statements are taken in: see pinfold vulnerabilities vex list'
  if (state === 'read') return `${vulnerabilities} vulnerabilities by ${tool || 'an unnamed scanner'}`
  return reason === 'SAME' ? `nothing new: ${message}` : `the report does not count: ${message} (${reason})`
}
