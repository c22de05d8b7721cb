// Entry point for scanner reports that are too large for a response of the API: `/downloads/reports/TICKET`. The API issues the
// ticket, and no other credential is needed.

import { isUnavailable, whyUnavailable } from '#db/unavailable.ts'
import { rawReportPath } from '#domains/scanning/image-findings/reports.model.ts'
import { openRaw } from '#domains/scanning/reports/raw-reports.service.ts'
import { answer } from '#edge/answer.ts'
import type { Edge } from '#edge/arrival.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { limitIdle } from '#edge/idle-limit.ts'
import { AppError, notFound, retryHeaders, unavailable } from '#lib/errors.ts'

const kind = 'report'

/** Entry point for reports that are downloaded by a link. */
export function downloadsEntryPoint({ app }: Edge): EntryPoint {
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
  arrival.named(kind)
  if (arrival.verb !== 'GET' && arrival.verb !== 'HEAD') {
    return send(arrival, 405, 'only GET and HEAD are allowed\n', { allow: 'GET, HEAD' })
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
    // The client disconnected or read too slowly, which is no error of the server.
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

/** Error response. `cause` is only for the log. */
type Refusal = { status: number; message: string; headers: Record<string, string>; cause: unknown }

function refusalOf(thrown: unknown): Refusal {
  const error = isUnavailable(thrown) ? unavailable(whyUnavailable(thrown), thrown) : thrown
  if (!(error instanceof AppError)) {
    const message = 'internal error; the server log has the cause under the request ID of this response'
    return { status: 500, message, headers: {}, cause: error }
  }
  return { status: error.http, message: error.message, headers: retryHeaders(error), cause: error }
}

function refuse(arrival: HttpArrival, thrown: unknown): void {
  const { status, message, headers, cause } = refusalOf(thrown)
  const { app } = arrival.edge
  if (status >= 500) app.failures.request(app.log, 'download failed', cause, { requestId: arrival.requestId })
  if (arrival.res.headersSent) arrival.res.destroy()
  send(arrival, status, `${message}\n`, headers)
}

function send(arrival: HttpArrival, status: number, body: string, headers: Record<string, string> = {}): void {
  answer(arrival, status, body, { 'content-type': 'text/plain; charset=utf-8', ...headers })
}
