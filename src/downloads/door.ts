// The door of what is too long for an answer of the API: `/downloads/reports/TICKET`. The ticket, which the API has given out, is
// all the right that it takes.

import { rawReportPath } from '#domains/scanning/known/reports.model.ts'
import { openRaw } from '#domains/scanning/reports/raw-reports.service.ts'
import type { Edge } from '#edge/arrival.ts'
import { type Door, type HttpArrival, withVerbs } from '#edge/doors.ts'
import { limitIdle } from '#edge/idle-limit.ts'
import { notFound } from '#lib/errors.ts'
import { refusalOf } from './errors.ts'

const kind = 'report'

/** The door of reports that are fetched by a link. */
export function downloadsDoor({ app }: Edge): Door {
  return {
    name: 'downloads',
    methods: withVerbs([kind]),
    deadlineMs: app.config.requestTimeoutMs,
    matches: (path) => path.startsWith('/downloads/'),
    serve,
    refuse,
  }
}

async function serve(arrival: HttpArrival): Promise<void> {
  const { req, res, path, requestId, signal, edge } = arrival
  const { app } = edge
  const method = `${arrival.verb} ${kind}`
  arrival.method = { name: method, fullName: method }
  if (arrival.verb !== 'GET' && arrival.verb !== 'HEAD') {
    return send(arrival, 405, 'only GET\n', { allow: 'GET, HEAD' })
  }
  if (!path.startsWith(rawReportPath)) throw notFound('path', path.slice(0, 100))
  const report = await openRaw({ app, log: app.log.with({ requestId }), signal }, path.slice(rawReportPath.length))
  if (signal.aborted || !arrival.settle('200') || req.method === 'HEAD') {
    report.close()
    if (!res.headersSent) writeHead(arrival, report.size).end()
    return
  }
  arrival.begun()
  limitIdle(req, app.config.requestTimeoutMs)
  try {
    await report.sendTo(writeHead(arrival, report.size))
  } catch (error) {
    // A client may go away at any time, and one that reads too slowly is cut off.
    if (!res.destroyed) throw error
  }
}

const writeHead = ({ res }: HttpArrival, size: number) =>
  res.writeHead(200, {
    'content-type': 'application/json',
    'content-disposition': 'attachment; filename="report.json"',
    'content-length': size,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  })

function refuse(arrival: HttpArrival, thrown: unknown): void {
  const { status, message, headers, cause } = refusalOf(thrown)
  const { app } = arrival.edge
  if (status >= 500) app.failures.request(app.log, 'download failed', cause, { requestId: arrival.requestId })
  if (arrival.res.headersSent) arrival.res.destroy()
  send(arrival, status, `${message}\n`, headers)
}

function send(arrival: HttpArrival, status: number, body: string, headers: Record<string, string> = {}): void {
  if (!arrival.settle(String(status))) return
  const { req, res } = arrival
  if (res.headersSent) return
  const type = { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) }
  res.writeHead(status, { ...type, 'cache-control': 'no-store', ...headers })
  res.end(req.method === 'HEAD' ? undefined : body)
}
