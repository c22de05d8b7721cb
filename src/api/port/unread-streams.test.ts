// HTTP/2 clients that do not read their responses.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { type CountedBytes, limitUnread } from './unread-streams.ts'

const answerBytes = 50_000

/** A server that sends the same bytes on each stream at once, and a client with a window of `window` bytes. */
async function start(options: { limitMs: number; most?: number; window: number; counts?: CountedBytes }) {
  const { limitMs, most, window, counts = 'once ended' } = options
  const unread = limitUnread(limitMs, most)
  const server = http2.createServer()
  let served = 0
  server.on('connection', unread.accept)
  server.on('stream', (stream, headers) => {
    if (headers[':path'] === '/head') {
      stream.respond({ ':status': 200, word: randomBytes(2000).toString('hex') }, { endStream: true })
      return
    }
    if (!unread.watch(stream, counts)) return
    served++
    stream.respond({ ':status': 200 })
    if (counts === 'all') stream.write(Buffer.alloc(answerBytes))
    else stream.end(Buffer.alloc(answerBytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const session = http2.connect(url, { settings: { initialWindowSize: window } })
  await once(session, 'remoteSettings')
  return {
    server,
    session,
    served: () => served,
    ask: () => session.request({ ':path': '/' }).on('error', () => {}),
    async [Symbol.asyncDispose]() {
      unread.stop()
      session.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Resolves also after an error. `once` would throw it. */
const closed = (one: http2.ClientHttp2Stream | http2.ClientHttp2Session) =>
  new Promise<void>((resolve) => one.once('close', () => resolve()))

const refused = http2.constants.NGHTTP2_REFUSED_STREAM
const calm = http2.constants.NGHTTP2_ENHANCE_YOUR_CALM

for (const counts of ['once ended', 'all'] as const) {
  test(`limits the unread bytes of one connection, counted ${counts}`, async () => {
    await using client = await start({ limitMs: 60_000, most: 3.5 * answerBytes, window: 0, counts })
    const streams = [1, 2, 3].map(client.ask)
    await Promise.all(streams.map((stream) => once(stream, 'response')))
    const fourth = client.ask()
    await closed(fourth)
    assert.equal(fourth.rstCode, calm)
    assert.deepEqual(
      streams.map(({ closed }) => closed),
      [false, false, false],
    )
    // A canceled stream frees its part of the limit.
    streams[0]!.close()
    await new Promise((resolve) => client.session.ping(resolve))
    const fifth = client.ask()
    await once(fifth, 'response')
    assert.equal(client.served(), 5)
  })
}

test('sends one large response, and refuses more streams while it waits', async () => {
  await using client = await start({ limitMs: 60_000, most: answerBytes / 2, window: 0 })
  const first = client.ask()
  await once(first, 'response')
  const second = client.ask()
  await closed(second)
  assert.deepEqual([second.rstCode, first.closed, client.served()], [refused, false, 1])
})

test('ends a stream that keeps writing to a client that does not read, even if it is the only stream', async () => {
  await using client = await start({ limitMs: 60_000, most: answerBytes / 2, window: 0, counts: 'all' })
  const only = client.ask()
  await closed(only)
  assert.equal(only.rstCode, calm)
})

test('closes a connection without any progress, and keeps one whose client reads', async () => {
  await using idle = await start({ limitMs: 200, window: 0 })
  await using reading = await start({ limitMs: 200, window: 65_535 })
  const quiet = reading.ask()
  let bytes = 0
  quiet.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await once(quiet, 'end')
  const stuck = idle.ask()
  await Promise.all([closed(stuck), closed(idle.session)])
  assert.deepEqual([bytes, reading.session.destroyed], [answerBytes, false])
  assert.equal(stuck.rstCode, http2.constants.NGHTTP2_CANCEL, 'it is told why')
})

test('disconnects a client that does not read the reset of its stream', async () => {
  await using client = await start({ limitMs: 200, window: 65_535 })
  // The proxy between client and server reads the data of the server, but does not forward the data.
  const between = net.createServer((socket) => {
    const inner = net.connect((client.server.address() as AddressInfo).port).on('error', () => {})
    socket.on('error', () => {}).pipe(inner)
    inner.once('data', () => inner.pause())
  })
  await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve))
  const deaf = http2.connect(`http://127.0.0.1:${(between.address() as AddressInfo).port}`)
  deaf.on('error', () => {}).on('connect', () => deaf.setLocalWindowSize(2 ** 30))
  for (let i = 0; i < 600; i++) deaf.request({ ':path': '/' }).on('error', () => {})
  const [inside] = (await once(client.server, 'session')) as [http2.ServerHttp2Session]
  await once(inside, 'close')
  deaf.destroy()
  between.close()
})

test('cancels waiting responses even if the client sends pings', async () => {
  await using client = await start({ limitMs: 200, window: 0 })
  const pings = setInterval(() => client.session.destroyed || client.session.ping(() => {}), 20)
  const stuck = client.ask()
  await closed(stuck).finally(() => clearInterval(pings))
  assert.equal(client.session.destroyed, false)
})

test('a slow reader has ten times the limit', async () => {
  await using client = await start({ limitMs: 100, window: 0 })
  // Other responses of the connection make progress, so the connection does not count as unread.
  const other = setInterval(
    () =>
      client.session
        .request({ ':path': '/head' })
        .on('error', () => {})
        .resume(),
    10,
  )
  const stuck = client.ask()
  await closed(stuck).finally(() => clearInterval(other))
  assert.equal(stuck.rstCode, http2.constants.NGHTTP2_CANCEL)
})
