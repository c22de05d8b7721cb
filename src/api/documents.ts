// Documents outside of the API: health, metrics, OpenAPI, and documents of the issuer. All but the metrics need no
// authentication.
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDiskFull as isDatabaseFull, isReadOnly, StoppedByFullDisk } from '#db/unavailable.ts'
import type { Edge } from '#edge/arrival.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { scopeWords } from '#issuer/clients.ts'
import { issuerDocuments } from '#issuer/discovery.ts'
import { grantsOf } from '#issuer/token-endpoint.ts'
import { isBusy, retryAfterOf } from '#lib/errors.ts'
import { readAsset } from '#lib/files/assets.ts'
import { isDiskFull } from '#lib/files/room.ts'
import type { Vendor } from '#lib/naming/vendor.ts'
import type { Api } from './entry-point.ts'
import { toAppError } from './errors.ts'
import { admitToMetrics, sendMetrics } from './metrics.ts'
import { renameDocument } from './naming/members.ts'
import { sendText } from './send-text.ts'

/** OpenAPI documents by path, one for each version. */
const openApiFiles = {
  '/openapi.json': 'gen/openapi.json',
  '/openapi-v1.json': 'gen/openapi-v1.json',
}

type Write = (res: ServerResponse, arrival: HttpArrival) => void | Promise<void>

/** Entry point of the documents. */
export function documentsEntryPoint(api: Api): EntryPoint {
  const documents = new Map<string, Write>([...aboutServer(api), ...aboutSecurity(api), ...aboutIssuer(api)])
  return {
    name: 'documents',
    methods: withVerbs([...documents.keys()]),
    quiet: true,
    countsItself: true,
    matches: (path) => documents.has(path),
    serve(arrival) {
      const { req, res, path } = arrival
      arrival.named(path)
      if (!probes.includes(path)) arrival.countStranger()
      if (req.method === 'GET' || req.method === 'HEAD') return documents.get(path)!(res, arrival)
      res.setHeader('allow', 'GET, HEAD')
      sendText(res, 405, 'text/plain', 'only GET is allowed\n')
    },
    refuse({ res, path }, error) {
      const known = toAppError(error)
      const { code, http, message } = known
      const retryAfter = retryAfterOf(known)
      if (http >= 500) api.app.failures.request(api.app.log, 'document request failed', error, { path })
      if (retryAfter !== undefined) res.setHeader('retry-after', String(retryAfter))
      if (code === 'UNAUTHENTICATED') res.setHeader('www-authenticate', 'Bearer')
      sendText(res, http, 'text/plain', `${message}\n`)
    },
  }
}

/** Paths without a rate limit, for load balancers. All clients behind a load balancer may share its address. */
const probes: readonly string[] = ['/healthz', '/readyz']

/**
 * Documents about the state of the server. A stopping server is not ready, so load balancers send no more requests while the last
 * ones finish.
 */
function aboutServer(api: Api): [path: string, Write][] {
  const { app, url, leaving, closing } = api
  const problemNow = createReadiness(api)
  const documents: [string, Write][] = [
    ['/healthz', (res) => sendText(res, 200, 'text/plain', 'ok\n')],
    [
      '/readyz',
      async (res) => {
        const problem = leaving.signal.aborted || closing.signal.aborted ? 'draining' : await problemNow()
        sendText(res, problem ? 503 : 200, 'text/plain', `${problem ?? `ok${describeSuspended(app)}`}\n`)
      },
    ],
    ...Object.entries(openApiFiles).map(([path, file]): [string, Write] => [path, openApi(file, url, app.vendor)]),
  ]
  const metrics: Write = async (res, arrival) => {
    await admitToMetrics(api, arrival)
    await sendMetrics(app.metrics, res, arrival.req.headers.accept)
  }
  return app.config.metrics && !app.config.metricsListen ? [...documents, ['/metrics', metrics]] : documents
}

/**
 * Warning about transparency logs whose signing is suspended. The status stays 200, since load balancers must not remove the
 * server because of one organization.
 */
function describeSuspended({ checkpointGuard: { suspended } }: Api['app']): string {
  const logs = suspended === 1 ? '1 transparency log' : `${suspended} transparency logs`
  return suspended === 0 ? '' : `\nsigning is suspended for ${logs}; the server log has the reason`
}

/**
 * Validity of the document in days. It starts anew with each request, so the document never expires while the server runs (RFC
 * 9116, 2.5.5).
 */
const securityTextDays = 90

/** Document with the contact for vulnerability reports (RFC 9116), if a setting has one. */
function aboutSecurity({ app, url }: Edge): [path: string, Write][] {
  const { securityContact } = app.config
  if (securityContact === '') return []
  const path = '/.well-known/security.txt'
  const write: Write = (res) => {
    const expires = new Date(app.clock().getTime() + securityTextDays * 86_400_000).toISOString()
    const lines = [`Contact: ${securityContact}`, `Expires: ${expires}`, `Canonical: ${url}${path}`]
    sendText(res, 200, 'text/plain; charset=utf-8', `${lines.join('\n')}\n`)
  }
  return [[path, write]]
}

/** Document from a file, which is read at the first request. */
function openApi(file: string, url: string, vendor: Vendor | undefined): Write {
  // All responses share these bytes.
  let text: Buffer | undefined
  return (res) => {
    if (!text) {
      const json = JSON.stringify({ ...(JSON.parse(readAsset(file).toString()) as object), servers: [{ url }] })
      text = Buffer.from(vendor ? renameDocument(json, vendor.token) : json)
    }
    sendText(res, 200, 'application/json', text)
  }
}

function aboutIssuer({ app, url }: Edge): [path: string, Write][] {
  const devices = app.config.deviceSignIn
  const offered = { grants: Object.keys(grantsOf(devices)), scopes: scopeWords, devices }
  return Object.entries(issuerDocuments(url, app.keyring, offered)).map(([path, document]) => [
    path,
    (res) => {
      res.setHeader('cache-control', 'public, max-age=300')
      sendText(res, 200, 'application/json', JSON.stringify(document()))
    },
  ])
}

const readinessMs = 1000
/** Milliseconds for which the check may take. Load balancers do not wait longer. */
const deadlineMs = 2000

/**
 * Creates the check whether the server is ready. It returns the reason if it is not. The database is checked at most once a
 * second, since anyone can send such requests.
 */
function createReadiness(edge: Edge): () => Promise<string | undefined> {
  const { clock, log } = edge.app
  let known: { at: number; problem: string | undefined } | undefined
  let asking: Promise<string | undefined> | undefined
  let lastProblem: string | undefined
  const ask = async (): Promise<string | undefined> => {
    const { problem, error } = await problemOf(edge)
    if (problem !== undefined && problem !== lastProblem)
      log.warn('not ready', { problem, ...(error ? { error } : {}) })
    lastProblem = problem
    known = { at: clock().getTime(), problem }
    asking = undefined
    return problem
  }
  return async () => {
    if (known && Math.abs(clock().getTime() - known.at) < readinessMs) return known.problem
    // Callers that come during a check share its result.
    asking ??= Promise.race([ask(), sleep(deadlineMs, 'the database did not respond within 2 s', { ref: false })])
    return asking
  }
}

/**
 * Maximum difference in seconds between the clocks of server and database. With a wrong clock, a server misjudges the times of
 * signatures and of other servers' rows. If most servers agree on the time, the clock of the database is wrong. Servers stay
 * ready then.
 */
const mostSkewSeconds = 5

/** Reports a full disk. If the check itself fails, the disk counts as not full; writes then report the error. */
async function fullDisk({ db, blobs, config }: Edge['app']): Promise<string | undefined> {
  const isFull = (asked: Promise<boolean>) => asked.catch(() => false)
  if (!db.shared && (await isFull(isDiskFull(config.data)))) return 'the disk of the data folder is full'
  return blobs.isFull && (await isFull(blobs.isFull())) ? 'the disk of the blob folder is full' : undefined
}

async function problemOf({ app }: Edge): Promise<{ problem: string | undefined; error?: unknown }> {
  try {
    // Checked first, since a full disk fails only writes, and the rest of this check writes nothing.
    const full = await fullDisk(app)
    if (full !== undefined) return { problem: full }
    await app.db.ping()
    const seconds = Math.round(app.skew.offsetMs() / 1000)
    if (Math.abs(seconds) <= mostSkewSeconds || app.skew.isDatabaseOff()) return { problem: undefined }
    const side = seconds < 0 ? 'ahead of' : 'behind'
    return { problem: `the clock of this server is ${Math.abs(seconds)} s ${side} that of the database` }
  } catch (error) {
    if (isBusy(error)) return { problem: 'all connections to the database are in use', error }
    if (error instanceof StoppedByFullDisk) return { problem: error.message, error }
    if (isDatabaseFull(error)) return { problem: 'the disk of the database is full', error }
    return { problem: isReadOnly(error) ? 'the database is read-only' : 'the database is unavailable', error }
  }
}
