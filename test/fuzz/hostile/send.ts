// Sends one HTTP/1.1 request, as if a proxy had forwarded it from the client at `from`.
import { Agent, request } from 'node:http'
import type { Json } from '../../support/pinfold.ts'
import type { Random } from '../../support/random.ts'

export type Ask = {
  method?: string
  path: string
  token?: string | undefined
  headers?: Record<string, string>
  body?: Buffer | string | object
  from: string
  agent?: Agent
}
export type Got = { status: number; headers: Record<string, string | string[] | undefined>; bytes: Buffer; json: Json }
export type Send = (ask: Ask) => Promise<Got>

const patienceMs = 60_000

/** Few connections, since only the requests on them are hostile. */
export const hostileAgent = new Agent({ keepAlive: true, maxSockets: 48 })

/** Rejects if no answer comes within a minute. */
export function sendTo(port: number): Send {
  return ({ method = 'GET', path, token, headers = {}, body, from, agent = hostileAgent }) =>
    new Promise((resolve, reject) => {
      const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
      const bytes = isJson ? JSON.stringify(body) : body
      const req = request(
        {
          host: '127.0.0.1',
          port,
          agent,
          method,
          path,
          headers: {
            'x-forwarded-for': from,
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            ...(isJson ? { 'content-type': 'application/json' } : {}),
            ...(bytes === undefined ? {} : { 'content-length': String(Buffer.byteLength(bytes)) }),
            ...headers,
          },
        },
        (res) => {
          const chunks: Buffer[] = []
          res.on('data', (chunk: Buffer) => chunks.push(chunk))
          res.once('error', reject)
          res.once('end', () => {
            clearTimeout(patience)
            const all = Buffer.concat(chunks)
            const isObject = String(res.headers['content-type']).includes('json') && all[0] === 123
            const json = isObject ? (JSON.parse(all.toString()) as Json) : {}
            resolve({ status: res.statusCode!, headers: res.headers, bytes: all, json })
          })
        },
      )
      const patience = setTimeout(() => req.destroy(new Error('no answer within a minute')), patienceMs)
      req.on('error', (error) => {
        clearTimeout(patience)
        reject(error)
      })
      req.end(bytes)
    })
}

/** Returns how an attack without an answer ended. Throws errors of this program. */
export function answerOf(error: unknown): string {
  const { code, message } =
    (error as Error & { cause?: NodeJS.ErrnoException }).cause ?? (error as NodeJS.ErrnoException)
  if (code === undefined && message !== 'no answer within a minute') throw error
  return code === undefined ? message : String(code)
}

/** One of a few hundred client addresses that no ordinary client has. */
export const stranger = (random: Random): string => `10.66.${random.below(2)}.${1 + random.below(200)}`
