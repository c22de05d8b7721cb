// Attacks on connections: bodies that never end, incomplete requests, clients that do not read, and invalid protocol messages.
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { oneOf } from '../../support/random.ts'
import { digestOf, types } from '../../support/registry.ts'
import { mutate } from '../mutate.ts'
import type { Kinds } from './kinds.ts'
import { answerOf, stranger } from './send.ts'
import type { World } from './world.ts'

/** Time to wait for the server. It is longer than any timeout of the server for a request, an answer or an idle connection. */
const patienceMs = 90_000
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** Longer than the server waits for a client that does not read. */
const unreadMs = 40_000

type Lines = Record<string, string>

/** Writes a text to a connection, and then one byte every second. Returns the status of the answer, or undefined if none came. */
async function overTcp(port: number, first: string, drip = '', reads = true): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1' })
  let text = ''
  let error = ''
  socket.on('error', (one) => {
    error = answerOf(one)
  })
  if (reads) {
    socket.on('data', (chunk: Buffer) => {
      if (text.length < 100) text += chunk.toString('latin1')
    })
  } else socket.pause()
  socket.write(first, 'latin1')
  const dripping = setInterval(() => socket.writable && drip !== '' && socket.write(drip), 1000)
  const closed = once(socket, 'close').then(() => false)
  // A client that does not read learns only afterwards that the server has closed the connection.
  if (!reads) await Promise.race([closed, sleep(unreadMs, true, { ref: false })])
  socket.resume()
  const given = await Promise.race([closed, sleep(patienceMs, true, { ref: false })])
  clearInterval(dripping)
  socket.destroy()
  return /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? (given ? 'left open' : error || 'closed')
}

const headOf = (method: string, path: string, headers: Lines): string =>
  `${method} ${path} HTTP/1.1\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

export async function connectionKinds(world: World, upload: () => string): Promise<Kinds> {
  const { port, evil, acme } = world
  const api = () => ({ authorization: `Bearer ${evil.owner.api}` })
  const push = () => ({ authorization: `Bearer ${evil.owner.registry}` })
  const doors = (): [method: string, path: string, headers: Lines][] => [
    ['GET', '/healthz', {}],
    ['GET', '/openapi.json', {}],
    ['POST', '/metrics', {}],
    ['POST', '/oauth/token', form],
    ['POST', '/sts/exchange', form],
    ['POST', '/auth/v1/register', {}],
    ['POST', '/nowhere', {}],
    ['POST', '/token', form],
    ['POST', `/registry/v2/repos/${evil.uid}`, api()],
    ['GET', '/events/v2/stream', api()],
    ['PUT', '/v2/evil/app/manifests/v1', { ...push(), 'content-type': types.image }],
    ['POST', '/v2/evil/app/blobs/uploads/', push()],
    ['PATCH', upload(), push()],
  ]
  const sessions = http2Sessions(port)
  const content = Buffer.alloc(32 * 1024 ** 2, 'large')
  const large = `/v2/evil/large/blobs/${digestOf(content)}`
  await evil.owner.oci('POST', `evil/large/blobs/uploads/?digest=${digestOf(content)}`, content)
  return {
    'endless bodies': {
      every: 500,
      atOnce: 60,
      attack(random) {
        const [method, path, headers] = oneOf(random, doors())
        const lines = { host: 'a', 'transfer-encoding': 'chunked', 'x-forwarded-for': stranger(random), ...headers }
        return overTcp(port, headOf(method, path, lines), '1\r\n{\r\n')
      },
    },
    'endless bodies over HTTP/2': {
      every: 500,
      atOnce: 60,
      attack(random) {
        const [method, path, headers] = oneOf(random, doors())
        return sessions.ask({ ':method': method, ':path': path, 'x-forwarded-for': stranger(random), ...headers }, '{')
      },
    },
    'endless bodies over gRPC': {
      every: 1000,
      atOnce: 30,
      attack(random) {
        const method = oneOf(random, [
          `${ReposService.typeName}/GetRepo`,
          'pinfold.platform.oidc.v1.SecurityTokenService/Exchange',
          'grpc.health.v1.Health/Watch',
          'grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
          'nobody.Service/Do',
        ])
        const type = { 'content-type': 'application/grpc', te: 'trailers', 'x-forwarded-for': stranger(random) }
        return sessions.ask({ ':method': 'POST', ':path': `/${method}`, ...type }, Buffer.from([0, 0, 1, 0, 0]))
      },
    },
    'half requests': {
      every: 200,
      atOnce: 100,
      attack(random) {
        const whole = `${headOf('POST', '/sts/exchange', { host: 'a', 'content-length': '5' })}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`
        const from = oneOf(random, [0, whole.indexOf('PRI')])
        return overTcp(port, whole.slice(from, from + random.below(24)))
      },
    },
    'headers that trickle': {
      every: 500,
      atOnce: 30,
      attack: () => overTcp(port, 'GET /healthz HTTP/1.1\r\nhost: a\r\n', 'x-more: 1\r\n'),
    },
    'readers that do not read': {
      every: 1000,
      atOnce: 40,
      attack(random) {
        const [path, headers] = oneOf(random, [
          ['/openapi.json', {}],
          ['/advisory/v2/documents?page_size=200', {}],
          ['/registry/v2/repos?page_size=200', api()],
          [large, push()],
        ] as [string, Lines][])
        const lines = { host: 'a', 'x-forwarded-for': stranger(random), ...headers }
        // Many requests on one connection, so that answers would pile up in the server if it allowed that.
        return overTcp(port, headOf('GET', path, lines).repeat(50), '', false)
      },
    },
    'hostile requests': {
      every: 50,
      atOnce: 10,
      attack(random) {
        const path = mutate(
          random,
          oneOf(random, ['/v2/acme/app/manifests/v1', `/iam/v2/groups/${acme.uid}`, '/token?scope=a']),
        )
        const method = mutate(random, oneOf(random, ['GET', 'POST', 'TRACE', 'CONNECT', 'PROPFIND']))
        const value = mutate(random, oneOf(random, ['localhost', '127.0.0.1:8080', 'a, b', 'Bearer x', 'chunked', '5']))
        const name = oneOf(random, [
          'host',
          'x-forwarded-for',
          'x-forwarded-host',
          'x-request-id',
          'authorization',
          'range',
          'transfer-encoding',
          'content-length',
          'user-agent',
          'traceparent',
        ])
        return overTcp(port, headOf(method, path, { host: 'a', connection: 'close', [name]: value }))
      },
    },
    'hostile requests over HTTP/2': {
      every: 50,
      atOnce: 10,
      attack: (random) =>
        sessions.ask({
          ':method': `${oneOf(random, ['GET', 'BREW', 'x', 'M-SEARCH'])}${random.below(3) === 0 ? '' : random.below(1e9)}`,
          ':path': `/${oneOf(random, ['healthz', 'v2/', 'nowhere', 'iam/v2/groups'])}${oneOf(random, ['', `/${random.below(1e9)}`])}`,
          ':authority': `${random.below(1e9)}.example`,
          'content-type': oneOf(random, [
            'application/json',
            'application/grpc',
            `application/grpc+${random.below(1e9)}`,
          ]),
          'x-forwarded-for': stranger(random),
          'user-agent': `agent-${random.below(1e9)}`,
        }),
    },
    'streams that are reset': { every: 500, attack: (random) => sessions.reset(50 + random.below(50)) },
  }
}

/** A few HTTP/2 connections. Each is replaced once the server has closed it. */
function http2Sessions(port: number) {
  const sessions: (http2.ClientHttp2Session | undefined)[] = Array.from({ length: 4 })
  let next = 0
  const session = (): http2.ClientHttp2Session => {
    const at = next++ % sessions.length
    const kept = sessions[at]
    if (kept && !kept.closed && !kept.destroyed) return kept
    const made = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
    made.unref()
    sessions[at] = made
    return made
  }
  return {
    /**
     * Sends a request. With `first`, its body begins with `first` and never ends. Returns the status, or how the stream ended.
     */
    async ask(headers: http2.OutgoingHttpHeaders, first?: Buffer | string): Promise<string> {
      const stream = session().request(headers, { endStream: first === undefined })
      let status = ''
      stream.on('response', (got) => {
        status = got['grpc-status'] === undefined ? String(got[':status']) : `grpc ${got['grpc-status']}`
      })
      stream.on('trailers', (got) => {
        if (got['grpc-status'] !== undefined) status = `grpc ${got['grpc-status']}`
      })
      stream.on('error', () => {}).resume()
      if (first !== undefined) stream.write(first)
      const began = performance.now()
      while (!stream.closed && !stream.destroyed && performance.now() - began < patienceMs) {
        await sleep(first === undefined ? 50 : 1000, undefined, { ref: false })
        if (first !== undefined && stream.writable && !stream.closed) stream.write('x')
      }
      const isOpen = !stream.closed && !stream.destroyed
      stream.close(http2.constants.NGHTTP2_CANCEL)
      return isOpen ? 'left open' : status || `reset ${stream.rstCode}`
    },
    async reset(count: number): Promise<string> {
      const one = session()
      for (let i = 0; i < count; i++) {
        const stream = one.request({ ':path': '/openapi.json' })
        stream.on('error', () => {}).close(http2.constants.NGHTTP2_CANCEL)
      }
      return one.closed ? 'closed' : 'sent'
    },
  }
}
