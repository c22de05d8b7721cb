// External scanner with the pluggable scanner API of Harbor. The test sets its findings and faults.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { App } from '#app.ts'
import type { Json } from './pinfold.ts'

export type Order = {
  registry: { url: string; authorization: string }
  artifact: { repository: string; digest: string; mime_type: string }
  enabled_capabilities: Json[]
}
export type Scan = { id: string; order: Order; looks: number }
/** Answers a request in place of the scanner. Returns true if it did. `what` is `metadata`, `scan` or `report`. */
export type AdapterFault = (what: string, res: ServerResponse, scan?: Scan) => boolean

export const reportType = 'application/vnd.security.vulnerability.report; version=1.1'

export const metadataOf = (more: Json = {}): Json => ({
  scanner: { name: 'Finder', vendor: 'Somebody', version: '2.0.1' },
  capabilities: [
    {
      type: 'vulnerability',
      consumes_mime_types: [
        'application/vnd.oci.image.manifest.v1+json',
        'application/vnd.docker.distribution.manifest.v2+json',
      ],
      produces_mime_types: ['application/vnd.scanner.adapter.vuln.report.raw', reportType.replace('; ', ';')],
    },
    { type: 'sbom', produces_mime_types: ['application/vnd.security.sbom.report+json; version=1.0'] },
  ],
  properties: { 'harbor.scanner-adapter/vulnerability-database-updated-at': '2026-02-28T06:00:00Z' },
  ...more,
})

export function reportOf({ artifact }: Order, ids: readonly string[] = ['CVE-2026-7']): Json {
  return {
    generated_at: '2026-03-01T08:00:00Z',
    artifact,
    scanner: { name: 'Finder', vendor: 'Somebody', version: '2.0.1' },
    severity: 'High',
    vulnerabilities: ids.map((id) => ({
      ...{
        id,
        package: 'zlib',
        version: '1.2.11',
        fix_version: '1.2.12',
        severity: 'High',
        description: 'Reads too far',
      },
      links: [`https://cves.example.com/${id}`],
    })),
  }
}

/** A report is ready at once, unless `fault` delays it. */
export async function startAdapter(fault: AdapterFault = () => false) {
  const scans = new Map<string, Scan>()
  const asked: string[] = []
  const headers: IncomingMessage['headers'][] = []
  const state = { fault, metadata: metadataOf() }
  const answer = (res: ServerResponse, status: number, body: Json) => {
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  const server = createServer(async (req, res) => {
    const { pathname } = new URL(req.url ?? '/', 'http://adapter.invalid')
    const [, id] = /^\/api\/v1\/scan\/([^/]+)\/report$/.exec(pathname) ?? []
    const what = id !== undefined ? 'report' : (pathname.split('/').at(-1) ?? '')
    asked.push(what)
    headers.push(req.headers)
    if (what === 'metadata') return void (state.fault(what, res) || answer(res, 200, state.metadata))
    if (what === 'scan') {
      const scan = { id: `scan-${scans.size + 1}`, order: (await json(req)) as Order, looks: 0 }
      scans.set(scan.id, scan)
      return void (state.fault(what, res, scan) || answer(res, 202, { id: scan.id }))
    }
    const scan = scans.get(id ?? '')
    if (!scan) return void res.writeHead(404).end()
    scan.looks++
    if (!state.fault(what, res, scan)) answer(res, 200, reportOf(scan.order))
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    scans,
    asked,
    headers,
    orders: () => [...scans.values()].map(({ order }) => order),
    breakWith(next: AdapterFault) {
      state.fault = next
    },
    mend() {
      state.fault = () => false
    },
    says(metadata: Json) {
      state.metadata = metadata
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type TestAdapter = Awaited<ReturnType<typeof startAdapter>>

/** Fault without an answer, so that the server's request times out. */
export const silence: AdapterFault = () => true

/** Sets the time that servers wait for scanners, in milliseconds. Disposing of it restores the former time. */
export function impatient(app: App, ms: number): Disposable {
  const patient = app.toScanners
  app.toScanners = {
    ...patient,
    send: (url, request, limits) =>
      patient.send(url, request, { ...limits, timeoutMs: Math.min(limits?.timeoutMs ?? Number.NaN, ms) }),
  }
  return { [Symbol.dispose]: () => void Object.assign(app, { toScanners: patient }) }
}

/** Settings that allow scanners on this machine. */
export const localScanners = { scannersPrivate: ['127.0.0.1', 'localhost'], allowInsecureScanners: true }
