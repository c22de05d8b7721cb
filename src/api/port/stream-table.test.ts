import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2, { type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { keepStreamsInList } from './stream-table.ts'

/** Starts a server that calls `keepStreamsInList` for each session. It responds only to requests for `/now`; other streams stay open. */
async function start() {
  const server = http2.createServer()
  const sessions: ServerHttp2Session[] = []
  const streams: ServerHttp2Stream[] = []
  const kept: boolean[] = []
  server.prependListener('session', (session) => {
    kept.push(keepStreamsInList(session))
    sessions.push(session)
  })
  server.on('stream', (stream, headers) => {
    streams.push(stream)
    stream.on('error', () => {})
    if (headers[':path'] === '/now') stream.respond({ ':status': 200 }, { endStream: true })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const ask = (path: string) => client.request({ ':path': path }).on('error', () => {})
  await once(ask('/now').resume(), 'close')
  return {
    client,
    ask,
    kept,
    session: sessions[0]!,
    streams,
    /** Resolves once `count` streams have arrived. */
    async came(count: number) {
      while (streams.length < count) await once(server, 'stream')
    },
    async [Symbol.asyncDispose]() {
      client.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

type Table = { size: number; get(id: number): ServerHttp2Stream | undefined }

function tableOf(session: ServerHttp2Session): Table {
  const states = Object.getOwnPropertySymbols(session).map((key) => {
    return (session as unknown as Record<symbol, { streams?: Table } | undefined | null>)[key]
  })
  return states.find((state) => state?.streams !== undefined)!.streams!
}

test('this version of Node keeps its streams in the expected property', async () => {
  await using server = await start()
  assert.deepEqual(server.kept, [true])
  assert.equal(tableOf(server.session).constructor.name, 'StreamTable')
})

test('lists a stream while it is open', async () => {
  await using server = await start()
  const table = tableOf(server.session)
  const open = [1, 2, 3].map(() => server.ask('/later'))
  await server.came(4)
  const [, first, second, third] = server.streams
  assert.equal(table.size, 3)
  for (const stream of [first, second, third]) assert.equal(table.get(stream!.id!), stream)
  open[1]!.close(http2.constants.NGHTTP2_CANCEL)
  await once(second!, 'close')
  assert.equal(table.size, 2)
  assert.equal(table.get(second!.id!), undefined)
  assert.equal(table.get(third!.id!), third)
  const answered = server.ask('/now').resume()
  await once(answered, 'close')
  first!.respond({ ':status': 200 }, { endStream: true })
  await once(open[0]!.resume(), 'close')
  assert.equal(table.size, 1)
})

test('destroying a session ends all its streams, and closing it waits for them', async () => {
  await using server = await start()
  const open = [server.ask('/later'), server.ask('/later')]
  await server.came(3)
  let isClosed = false
  server.session.once('close', () => {
    isClosed = true
  })
  server.session.close()
  server.streams[1]!.respond({ ':status': 200 }, { endStream: true })
  await once(open[0]!.resume(), 'close')
  assert.equal(isClosed, false)
  server.session.destroy()
  await once(server.streams[2]!, 'close')
  assert.equal(tableOf(server.session).size, 0)
})

test('leaves a session with streams, or another object, unchanged', async () => {
  assert.equal(keepStreamsInList({} as ServerHttp2Session), false)
  await using server = await start()
  server.ask('/later')
  await server.came(2)
  const table = tableOf(server.session)
  assert.equal(keepStreamsInList(server.session), false)
  assert.equal(tableOf(server.session), table)
})
