// Mirror of vulnerability data sources on this machine.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from './pinfold.ts'

export type Answer = { body: Buffer | string; etag?: string } | { status: number } | { cut: true; body: string }

/** Mirror that serves the given files and records the requests for them. */
export async function startMirror(files: Record<string, Answer>) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1))
    asked.push(path)
    const answer: Answer = files[path] ?? { status: 404 }
    if ('status' in answer) return response.writeHead(answer.status).end()
    if ('cut' in answer) {
      response.writeHead(200, { 'content-length': answer.body.length + 100 }).write(answer.body)
      return setImmediate(() => response.destroy())
    }
    const headers = answer.etag === undefined ? {} : { etag: answer.etag }
    if (answer.etag !== undefined && request.headers['if-none-match'] === answer.etag) {
      return response.writeHead(304, headers).end()
    }
    response.writeHead(200, { ...headers, 'last-modified': 'Fri, 20 Nov 2026 10:00:00 GMT' }).end(answer.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    files,
    /** Paths that were requested since the last call, sorted. */
    asked: () => asked.splice(0).sort(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** OSV record about flask of PyPI. */
export const osv = (id: string, fixed = '1.2', more: Json = {}) =>
  JSON.stringify({
    id,
    modified: '2026-11-20T00:00:00Z',
    aliases: [`CVE-${id}`],
    summary: `About ${id}`,
    affected: [
      {
        package: { ecosystem: 'PyPI', name: 'flask' },
        ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
      },
    ],
    ...more,
  })
