import assert from 'node:assert/strict'
import { once } from 'node:events'
import type http from 'node:http'
import http2 from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { turns } from '#lib/scheduling/turns.ts'
import { connectRaw, type RawConnection, takeResponse } from '../../../test/support/raw-http.ts'
import { createConnections } from './connections.ts'
import { createOnePort } from './one-port.ts'

const patient = { headersTimeout: 20_000, requestTimeout: 20_000, keepAliveTimeout: 20_000 }
const strict = { headersTimeout: 300, requestTimeout: 600, connectionsCheckingInterval: 50 }

/** Returns method, path and body over both protocols. `/slow` responds when `release` is called. */
async function startEcho(options: http.ServerOptions = {}, connections = createConnections(1000, () => true)) {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const asked: string[] = []
  const onRequest = async (req: http.IncomingMessage, res: http.ServerResponse) => {
    let body = ''
    for await (const chunk of req) body += chunk
    asked.push(req.url!)
    if (req.url === '/slow') await held
    if (req.url === '/large') return res.end(Buffer.alloc(64 * 1024 ** 2))
    const text = `${req.httpVersionMajor} ${req.method} ${req.url} ${body}`
    res.writeHead(200, { 'content-length': Buffer.byteLength(text) })
    res.end(text)
  }
  const h2 = http2.createServer((req, res) => void onRequest(req as never, res as never))
  const onePort = createOnePort({
    isUpload: () => false,
    connections,
    errorDomain: 'test',
    ...patient,
    ...options,
    requestTimeout: options.requestTimeout ?? patient.requestTimeout,
    onRequest: (req, res) => void onRequest(req, res).catch(() => res.destroy()),
    onHttp2: (socket) => h2.emit('connection', socket),
  })
  onePort.server.listen(0, '127.0.0.1')
  await once(onePort.server, 'listening')
  const { port } = onePort.server.address() as AddressInfo
  return { ...onePort, port, release, asked, [Symbol.asyncDispose]: () => onePort.drain(0) }
}

/** Sends each piece as a separate packet. */
async function writeSlowly(connection: RawConnection, pieces: Iterable<string>): Promise<void> {
  for (const piece of pieces) {
    connection.write(piece)
    await sleep(5)
  }
}

const request = (line: string, body = '') =>
  `${line} HTTP/1.1\r\nhost: a\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

test('handles a request as HTTP/1.1 although its first bytes could start an HTTP/2 connection', async () => {
  await using echo = await startEcho()
  for (const method of ['POST', 'PUT', 'PATCH', 'PROPFIND', 'GET']) {
    for (const at of [1, 2, 3]) {
      using connection = await connectRaw(echo.port)
      const text = request(`${method} /x`, 'hello')
      await writeSlowly(connection, [text.slice(0, at), text.slice(at)])
      assert.equal((await takeResponse(connection)).body, `1 ${method} /x hello`, `${method} split at ${at}`)
    }
  }
})

test('reads a request that arrives byte by byte, and the next one on its connection', async () => {
  await using echo = await startEcho()
  using connection = await connectRaw(echo.port)
  for (const body of ['one', 'two']) {
    await writeSlowly(connection, request('POST /x', body))
    assert.equal((await takeResponse(connection)).body, `1 POST /x ${body}`)
  }
})

test('responds in order to several requests in one packet', async () => {
  await using echo = await startEcho()
  using connection = await connectRaw(echo.port)
  connection.write(request('POST /1', 'one') + request('PUT /2', 'two') + request('GET /3'))
  for (const text of ['1 POST /1 one', '1 PUT /2 two', '1 GET /3 ']) {
    assert.equal((await takeResponse(connection)).body, text)
  }
})

test('serves an HTTP/2 client whose preface arrives in pieces', async () => {
  await using echo = await startEcho()
  const session = http2.connect(`http://127.0.0.1:${echo.port}`)
  const stream = session.request({ ':method': 'POST', ':path': '/x' })
  stream.end('hello')
  assert.equal(await textOf(stream), '2 POST /x hello')
  session.close()

  // The preface, an empty SETTINGS frame, and a ping frame with `pinfold!`, which the server must echo.
  const frames = '\0\0\0\x04\0\0\0\0\0\0\0\x08\x06\0\0\0\0\0pinfold!'
  using connection = await connectRaw(echo.port)
  await writeSlowly(connection, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${frames}`)
  await connection.take(/pinfold!/)
})

test('refuses data that only starts like an HTTP/2 preface', async () => {
  await using echo = await startEcho()
  for (const text of ['PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n', 'PRI / HTTP/1.1\r\nhost: a\r\n\r\n']) {
    using connection = await connectRaw(echo.port)
    connection.write(text)
    await connection.take(/^HTTP\/1\.1 505 /)
    await connection.closed
  }
})

/**
 * Resolves once the server has closed the connection. Rejects at the time limit of the test, so that the server of the test stops
 * too.
 */
function closedWithin(connection: RawConnection, { signal }: TestContext): Promise<unknown> {
  const over = once(signal, 'abort').then(() => {
    throw new Error('the server has not closed the connection')
  })
  return Promise.race([connection.closed, over])
}

test('closes a connection of an unknown protocol at the time limit, and not before', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  await using echo = await startEcho(strict)
  using connections = new DisposableStack()
  const open = new Map<string, RawConnection>()
  for (const text of ['', 'P', 'PR', 'PRI * HTTP/2.0\r\n\r\nSM']) {
    const connection = connections.use(await connectRaw(echo.port))
    if (text !== '') connection.write(text)
    open.set(text, connection)
  }
  const closed: string[] = []
  for (const [text, connection] of open) void connection.closed.then(() => closed.push(text))
  // A response to another client proves that the server has finished earlier work.
  const ask = async () => {
    using other = await connectRaw(echo.port)
    other.write(request('GET /x'))
    assert.equal((await takeResponse(other)).status, 200)
  }
  await ask()
  t.mock.timers.tick(strict.headersTimeout - 1)
  await ask()
  assert.deepEqual(closed, [])
  t.mock.timers.tick(1)
  for (const [text, connection] of open) {
    await closedWithin(connection, t)
    assert.match(connection.received(), text === '' ? /^$/ : /^HTTP\/1\.1 408 /, text)
  }
})

test('responds 408 at the time limit to headers that are never finished', async (t) => {
  await using echo = await startEcho(strict)
  for (const text of ['G', 'POST /x HTTP/1.1\r\nho']) {
    using connection = await connectRaw(echo.port)
    connection.write(text)
    await closedWithin(connection, t)
    assert.match(connection.received(), /^HTTP\/1\.1 408 /, text)
  }
})

test('responds 408 at the time limit to a client that sends its headers very slowly', async (t) => {
  await using echo = await startEcho(strict)
  using connection = await connectRaw(echo.port)
  connection.write('POST /x HTTP/1.1\r\n')
  const drip = setInterval(() => connection.write('x: y\r\n'), 20)
  try {
    await closedWithin(connection, t)
  } finally {
    clearInterval(drip)
  }
  assert.match(connection.received(), /^HTTP\/1\.1 408 /)
})

test('frees all resources of a client that disconnects before sending a request', async () => {
  await using echo = await startEcho()
  for (const text of ['', 'P']) {
    using connection = await connectRaw(echo.port)
    if (text !== '') connection.write(text)
  }
  using connection = await connectRaw(echo.port)
  connection.write(request('GET /x'))
  assert.equal((await takeResponse(connection)).status, 200)
})

test('a shutdown finishes running requests, and closes silent and idle connections at once', async () => {
  const echo = await startEcho()
  using silent = await connectRaw(echo.port)
  using idle = await connectRaw(echo.port)
  idle.write(request('GET /x'))
  await takeResponse(idle)
  using busy = await connectRaw(echo.port)
  busy.write(request('GET /slow'))
  const arrived = once(echo.server, 'request')
  await arrived

  let drained = false
  const drain = echo.drain(60_000).then(() => {
    drained = true
  })
  await Promise.all([silent.closed, idle.closed])
  await assert.rejects(connectRaw(echo.port), /ECONNREFUSED/)
  assert.equal(drained, false)
  assert.equal(busy.received(), '')

  echo.release()
  assert.equal((await takeResponse(busy)).body, '1 GET /slow ')
  await drain
  await busy.closed
})

test('a shutdown stops requests that still run after the grace period', async () => {
  const echo = await startEcho()
  using busy = await connectRaw(echo.port)
  busy.write(request('GET /slow'))
  await once(echo.server, 'request')
  const session = http2.connect(`http://127.0.0.1:${echo.port}`)
  session.on('error', () => {})
  const stream = session.request({ ':path': '/slow' })
  stream.on('error', () => {})
  await once(session, 'remoteSettings')

  const closed = once(session, 'close')
  await echo.drain(50)
  await busy.closed
  await closed
  assert.equal(busy.received(), '')
})

async function textOf(stream: http2.ClientHttp2Stream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += chunk
  return text
}

test('responds to pipelined requests one after the other', async () => {
  await using echo = await startEcho()
  using connection = await connectRaw(echo.port)
  connection.write(['/slow', '/a', '/b'].map((path) => request(`GET ${path}`)).join(''))
  await once(echo.server, 'request')
  using other = await connectRaw(echo.port)
  other.write(request('GET /other'))
  await takeResponse(other)
  assert.deepEqual(echo.asked, ['/slow', '/other'])
  echo.release()
  const bodies = [await takeResponse(connection), await takeResponse(connection), await takeResponse(connection)]
  assert.deepEqual(
    bodies.map(({ body }) => body),
    ['1 GET /slow ', '1 GET /a ', '1 GET /b '],
  )
  connection.write(request('POST /x', 'hello'))
  assert.equal((await takeResponse(connection)).body, '1 POST /x hello')
})

test('closes a client that pipelines too many requests', async (t) => {
  await using echo = await startEcho()
  using connection = await connectRaw(echo.port)
  connection.write(request('GET /slow').repeat(200))
  await closedWithin(connection, t)
  assert.deepEqual(echo.asked, ['/slow'])
})

test('closes a client that does not read its response within the time limit', async (t) => {
  await using echo = await startEcho(strict)
  const accepted = once(echo.server, 'connection')
  using connection = await connectRaw(echo.port)
  connection.pause()
  connection.write(request('GET /large'))
  const [socket] = (await accepted) as [Socket]
  await once(socket, 'close', { signal: t.signal })
  assert.deepEqual(echo.asked, ['/large'])
})

test('limits connections per address over both protocols, and allows new ones as others close', async () => {
  let refused = 0
  const connections = createConnections(
    2,
    () => false,
    () => refused++,
  )
  await using echo = await startEcho({}, connections)
  using first = await connectRaw(echo.port)
  const session = http2.connect(`http://127.0.0.1:${echo.port}`)
  await once(session, 'remoteSettings')
  using third = await connectRaw(echo.port)
  await third.closed
  assert.equal(refused, 1)
  first.write(request('GET /first'))
  assert.equal((await takeResponse(first)).status, 200)
  session.destroy()
  await new Promise((resolve) => session.once('close', resolve))
  // The server notices a closed connection a moment later.
  for (let over = false; !over; ) {
    using again = await connectRaw(echo.port)
    again.write(request('GET /again'))
    over = await takeResponse(again).then(
      ({ status }) => status === 200,
      () => false,
    )
  }
})

test('counts addresses separately, an IPv6 network as one, and exempt addresses not at all', () => {
  const connections = createConnections(1, (address) => address === '10.0.0.1')
  const open = (address: string) => connections.open(address)
  assert.deepEqual(['192.0.2.1', '192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'].map(open), [true, false, false, true])
  assert.deepEqual(['2001:db8::1', '2001:db8::2', '2001:db8:1::1'].map(open), [true, false, true])
  assert.deepEqual(['10.0.0.1', '10.0.0.1'].map(open), [true, true])
  connections.close('192.0.2.1')
  assert.deepEqual(['192.0.2.1', '192.0.2.1'].map(open), [true, false])
})

test('accepts many connections in one turn of the event loop during long work', async () => {
  await using echo = await startEcho()
  const wanted = 30
  let [accepted, rounds] = [0, 0]
  echo.server.on('connection', () => accepted++)
  await turns.next()
  const sockets = Array.from({ length: wanted }, () => connect(echo.port, '127.0.0.1'))
  for (; accepted < wanted; rounds++) {
    await turns.next()
    const until = performance.now() + 6
    while (performance.now() < until);
  }
  for (const socket of sockets) socket.destroy()
  assert.ok(rounds < wanted / 2, `${rounds} turns of the work`)
})
