import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ListScanReportsResponseJson, ScanReportJson } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import { isDigest } from '#lib/digest.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { apiReader, callerOptions } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { digestOf } from '../vulnerabilities/scanned-image.ts'

const maxBytes = 32 * 2 ** 20
const waitMs = 60_000
const betweenMs = 250

export const importScanReport: Command = {
  details: `Reads the JSON of Grype or Trivy, CycloneDX with vulnerabilities, SARIF (only ids and severities), OpenVEX, or VEX in CSAF. The
report can be in a signed envelope and compressed with gzip. Vulnerability reports (API version 1) then show it next to the findings of
the server. Needs the capability vuln_report.create in the repository.
Waits until the server has read the report. The exit code is 1 if the server cannot read it.`,
  arguments: [{ name: '<file>', summary: 'File with the report; - for standard input' }],
  options: [
    { flags: '--image <ref>', summary: 'Image of the report: acme/app:1.0 or acme/app@sha256:…; default tag: latest' },
    ...callerOptions,
    outputOption,
  ],
  async run(terminal, options) {
    if (!options.image)
      throw usageError('no report was sent: give the image with --image, such as --image acme/app:1.2')
    const report = await contentOf(String(options.file))
    const api = await apiReader(terminal, options)
    const { repo, digest } = await imageAt(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/scanReports`
    const packed = await promisify(gzip)(report)
    const sent = (await api.call('POST', path, { report: packed.toString('base64') })) as ScanReportJson
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
  if (!found.isFile()) throw usageError(`${file} is not a file; give the file with the report`)
  if (found.size > maxBytes)
    throw usageError(`${file} is larger than ${maxBytes / 2 ** 20} MiB, the limit for a report`)
  return readFile(file)
}

async function imageAt(api: ApiReader, ref: string): Promise<{ repo: string; digest: string }> {
  const [, given] = ref.split('@')
  if (given === undefined || isDigest(given)) return digestOf(api, ref)
  throw usageError(`${given} is not a valid digest: give sha256: and 64 hex digits`)
}

/** Waits until the server has processed the report, and returns it. If that takes too long, returns the report as it was sent. */
async function readReport(api: ApiReader, path: string, sent: ScanReportJson): Promise<ScanReportJson> {
  for (const until = Date.now() + waitMs; Date.now() < until; await sleep(betweenMs)) {
    const { reports = [] } = (await api.call('GET', path).catch(() => ({}))) as ListScanReportsResponseJson
    const now = reports.find(({ id }) => id === sent.id)
    // A caller may be allowed to send reports but not to see them.
    if (!now) return sent
    if (now.state !== 'waiting') return now
  }
  return sent
}

function sentence({ state, reason, message = '', tool = '', vulnerabilities = 0 }: ScanReportJson): string {
  if (state === 'waiting') return 'the report was received, and waits to be read'
  if (state === 'stated') return 'imported the VEX statements; pinfold vulnerabilities vex list lists them'
  if (state === 'read') return `imported ${vulnerabilities} vulnerabilities from ${tool || 'an unnamed scanner'}`
  return reason === 'SAME' ? `nothing was changed: ${message}` : `the report was ignored: ${message} (${reason})`
}
