// Upstreams that report their tag history.
import type { Json } from './pinfold.ts'
import type { Fault } from './upstream.ts'

const urlOf = (url = '/'): URL => new URL(url, 'http://upstream.invalid')

/** Serves `_svc/history` with up to a thousand records, beginning at `start`. */
export const telling =
  (records: () => Json[]): Fault =>
  (req, res) => {
    const { pathname, searchParams } = urlOf(req.url)
    if (!pathname.includes('/_svc/history/')) return false
    const start = searchParams.get('start') ?? ''
    const history = records().filter(({ updateTimestamp }) => updateTimestamp >= start)
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ history: history.slice(0, 1000) }))
    return true
  }

export type Drafted = { time: string; digest: string; event: string }

/** Serves the format of the draft of the distribution specification, newest moves first, a thousand in a page. */
export const drafting =
  (moves: readonly Drafted[]): Fault =>
  (req, res) => {
    const { pathname, searchParams } = urlOf(req.url)
    if (!pathname.includes('/_oci/tag-history/')) return false
    const [before, since] = [searchParams.get('before') ?? '9', searchParams.get('since') ?? '']
    const fitting = moves.filter(({ time }) => time < before && time > since)
    const page = fitting.slice(0, 1000).map((one) => ({
      mediaType: 'application/octet-stream',
      size: 0,
      digest: one.digest,
      annotations: {
        'org.opencontainers.distribution.tag.timestamp': one.time,
        'org.opencontainers.distribution.tag.event': one.event,
      },
    }))
    const next = `<${pathname}?n=1000&before=${fitting[999]?.time}>; rel="next"`
    res.writeHead(200, fitting.length > 1000 ? { link: next } : {})
    res.end(JSON.stringify({ schemaVersion: 2, manifests: page }))
    return true
  }

/** Combines faults: the first one that answers is used. */
export const either =
  (...faults: Fault[]): Fault =>
  (req, res) =>
    faults.some((fault) => fault(req, res))
