import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createOutgoing, isPublicAddress, type Lookup, OutgoingError, type OutgoingReason } from './outgoing.ts'
import { allPrivateAddresses, privateAddresses } from './private-addresses.ts'

const everything = { allowed: allPrivateAddresses, allowHttp: true }

/** Server on loopback that records its requests. */
async function startServer(answer: RequestListener) {
  const asked: IncomingMessage[] = []
  const server = createServer((request, response) => {
    asked.push(request)
    answer(request, response)
  })
  let connections = 0
  server.on('connection', () => connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    asked,
    port,
    url: `http://127.0.0.1:${port}`,
    connections: () => connections,
    [Symbol.dispose]: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Resolver with one answer, which records the requested names. */
function resolverOf(...addresses: string[]) {
  const names: string[] = []
  const lookup: Lookup = (hostname, _, callback) => {
    names.push(hostname)
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    setImmediate(callback, null, found)
  }
  return { lookup, names }
}

/** No name may be resolved in the real network. */
const noLookup: Lookup = (hostname) => assert.fail(`${hostname} was looked up`)

const failsWith = (promise: Promise<unknown>, reason: OutgoingReason, message?: string) =>
  assert.rejects(
    promise,
    (error) => {
      assert.ok(error instanceof OutgoingError)
      assert.equal(error.reason, reason)
      return true
    },
    message,
  )

test('reads JSON, and requests only uncompressed JSON', async () => {
  using server = await startServer((_, response) => response.end('\ufeff{"keys":[]}'))
  const outgoing = createOutgoing({ ...everything, lookup: noLookup })
  assert.deepEqual(await outgoing.getJson(`${server.url}/a/b?c=d#e`), { keys: [] })
  const [request] = server.asked
  assert.equal(request!.method, 'GET')
  assert.equal(request!.url, '/a/b?c=d')
  assert.equal(request!.headers['accept-encoding'], 'identity')
  assert.equal(request!.headers.authorization, undefined)
})

test('reads text with the headers of the caller, also after a redirect', async () => {
  using server = await startServer((request, response) => {
    if (request.url === '/old') response.writeHead(301, { location: '/new' }).end()
    else response.end(request.url === '/new' ? '<é/>' : Buffer.from([0xff]))
  })
  const outgoing = createOutgoing(everything)
  const headers = { accept: 'text/xml', authorization: 'Bearer x' }
  assert.equal(await outgoing.getText(`${server.url}/old`, headers), '<é/>')
  assert.deepEqual(
    server.asked.map((request) => [request.headers.accept, request.headers.authorization]),
    [
      ['text/xml', 'Bearer x'],
      ['text/xml', 'Bearer x'],
    ],
  )
  await failsWith(outgoing.getText(`${server.url}/bytes`, {}), 'not-text')
  await failsWith(outgoing.getText(`${server.url}/new`, {}, { maxBytes: 3 }), 'too-large')
})

test('reports a status other than 200', async () => {
  using server = await startServer((_, response) => response.writeHead(404).end())
  await assert.rejects(createOutgoing(everything).getText(server.url, {}), { reason: 'status', status: 404 })
})

test('resolves a host name once, and connects to the resolved address', async () => {
  using server = await startServer((_, response) => response.end('1'))
  const { lookup, names } = resolverOf('127.0.0.1', '127.0.0.2')
  const outgoing = createOutgoing({ ...everything, lookup })
  assert.equal(await outgoing.getJson(`http://issuer.test:${server.port}/`), 1)
  assert.deepEqual(names, ['issuer.test'])
  assert.equal(server.asked[0]!.headers.host, `issuer.test:${server.port}`)
})

test('resolves the host name for each request, and reuses no connection', async () => {
  using server = await startServer((_, response) => response.end('1'))
  const { lookup, names } = resolverOf('127.0.0.1')
  const outgoing = createOutgoing({ ...everything, lookup })
  await outgoing.getJson(`http://issuer.test:${server.port}/`)
  await outgoing.getJson(`http://issuer.test:${server.port}/`)
  assert.equal(names.length, 2)
  assert.equal(server.connections(), 2)
})

const notPublic = [
  ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.255.255', '168.63.129.16'],
  ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.0.2.1', '192.88.99.1', '192.168.0.1'],
  ...['198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1'],
  ...['255.255.255.255', '::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '64:ff9b::7f00:1'],
  ...['64:ff9b:1::1', '100::1', '2001::1', '2001:2::1', '2001:10::1', '2001:20::1', '2001:db8::1', '2002:7f00:1::1'],
  ...['3fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'febf::1', 'fec0::1', 'ff02::1'],
]

test('refuses a private address before connecting, by name and as an address', async () => {
  for (const address of notPublic) {
    assert.equal(isPublicAddress(address), false, address)
    const { lookup, names } = resolverOf(address)
    const outgoing = createOutgoing({ allowed: privateAddresses([]), allowHttp: true, lookup })
    await failsWith(outgoing.getJson('https://issuer.test/'), 'private-address', address)
    assert.deepEqual(names, ['issuer.test'])
    const literal = address.includes(':') ? `[${address}]` : address
    await failsWith(outgoing.getJson(`https://${literal}/`), 'private-address', address)
    await failsWith(outgoing.getJson(`http://${literal}:8080/`), 'private-address', address)
    assert.equal(names.length, 1)
  }
})

test('refuses a private address in each of its spellings', async () => {
  using server = await startServer((_, response) => response.end('1'))
  const outgoing = createOutgoing({ allowed: privateAddresses([]), allowHttp: true, lookup: noLookup })
  const spellings = [
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '0',
    '１２７.0.0.1',
    '%3127.0.0.1',
  ]
  for (const host of [...spellings, '[::ffff:7f00:1]', '[0:0:0:0:0:0:0:1]', '[::]']) {
    await failsWith(outgoing.getJson(`http://${host}:${server.port}/`), 'private-address', host)
  }
  assert.equal(server.connections(), 0)
})

test('refuses a host with one private address among public ones', async () => {
  using server = await startServer((_, response) => response.end('1'))
  for (const addresses of [
    ['8.8.8.8', '127.0.0.1'],
    ['127.0.0.1', '8.8.8.8'],
    ['2001:4860:4860::8888', '::1'],
    ['8.8.8.8', 'fe80::1%lo'],
    ['8.8.8.8', 'nonsense'],
  ]) {
    const outgoing = createOutgoing({ allowed: privateAddresses([]), allowHttp: true, ...resolverOf(...addresses) })
    await failsWith(outgoing.getJson(`http://issuer.test:${server.port}/`), 'private-address', addresses.join())
  }
  assert.equal(server.connections(), 0)
})

test('treats addresses next to private ranges as public', () => {
  const v4 = ['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.0.0.1']
  const more = ['172.15.255.255', '172.32.0.0', '192.0.1.1', '192.167.1.1', '198.17.1.1', '198.20.0.0', '223.255.255.1']
  const v6 = ['2001:200::1', '2001:4860:4860::8888', '2606:4700::1111', '2a00::1', '2003::1', '3fff:1000::1']
  for (const address of [...v4, ...more, ...v6]) assert.equal(isPublicAddress(address), true, address)
  for (const text of ['', 'localhost', '127.1', '[::1]', '8.8.8.8:53']) assert.equal(isPublicAddress(text), false, text)
})

test('refuses plain http, other schemes, credentials and invalid URLs', async () => {
  const strict = createOutgoing({ allowed: allPrivateAddresses, allowHttp: false, lookup: noLookup })
  await failsWith(strict.getJson('http://127.0.0.1/'), 'insecure')
  const lenient = createOutgoing({ ...everything, lookup: noLookup })
  const wrong = [
    '',
    '/path',
    '//127.0.0.1/',
    'https://',
    'file:///etc/passwd',
    'data:,1',
    'ftp://127.0.0.1/',
    'unix:/x',
  ]
  for (const url of [...wrong, 'http://me@127.0.0.1/', 'http://me:secret@127.0.0.1/', 'http://:secret@127.0.0.1/']) {
    await failsWith(lenient.getJson(url), 'bad-url', url)
  }
})

test('follows at most three redirects to the same origin', async () => {
  using server = await startServer(({ url }, response) => {
    const left = Number(url!.slice(1))
    if (left === 0) return response.end('"there"')
    response
      .writeHead([301, 302, 303, 307, 308][left]!, { location: left % 2 ? `./${left - 1}` : `/${left - 1}` })
      .end()
  })
  const outgoing = createOutgoing({ ...everything, lookup: noLookup })
  assert.equal(await outgoing.getJson(`${server.url}/3`), 'there')
  assert.equal(server.asked.length, 4)
  await failsWith(outgoing.getJson(`${server.url}/4`), 'redirect')
  assert.equal(server.asked.length, 8)
})

test('refuses a redirect to another scheme, host or port, or without a target', async () => {
  using other = await startServer((_, response) => response.end('1'))
  let location: string | undefined
  using server = await startServer((_, response) => response.writeHead(302, location ? { location } : {}).end())
  const outgoing = createOutgoing({ ...everything, lookup: noLookup })
  const elsewhere = [
    other.url,
    `//localhost:${server.port}/`,
    `https://127.0.0.1:${server.port}/`,
    'file:///etc/passwd',
  ]
  for (location of [undefined, ...elsewhere, 'http://', 'data:application/json,1']) {
    await failsWith(outgoing.getJson(server.url), 'redirect', location)
  }
  location = server.url.replace('//', '//me:secret@')
  await failsWith(outgoing.getJson(server.url), 'bad-url')
  assert.equal(other.connections(), 0)
})

test('resolves the host of a redirect again, even if it is the same', async () => {
  using server = await startServer((_, response) => response.writeHead(302, { location: '/again' }).end())
  const { port } = server
  let asked = 0
  const lookup: Lookup = (_, __, callback) => callback(null, asked++ ? [] : [{ address: '127.0.0.1', family: 4 }])
  await failsWith(createOutgoing({ ...everything, lookup }).getJson(`http://issuer.test:${port}/`), 'unreachable')
  assert.equal(asked, 2)
  assert.equal(server.connections(), 1)
})

test('accepts only status 200', async () => {
  let status = 0
  using server = await startServer((_, response) => response.writeHead(status).end(status === 204 ? '' : '{}'))
  const outgoing = createOutgoing(everything)
  for (status of [201, 204, 206, 300, 304, 400, 401, 404, 429, 500, 503]) {
    await failsWith(outgoing.getJson(server.url), 'status', String(status))
  }
})

test('refuses a response that is not UTF-8 JSON, with an error that does not quote it', async () => {
  let body: string | Buffer = ''
  using server = await startServer((_, response) => response.end(body))
  const outgoing = createOutgoing(everything)
  for (body of ['', '<html>', '{"a":1', '{}{}', Buffer.from([0x22, 0xff, 0x22]), '['.repeat(200_000)]) {
    await failsWith(outgoing.getJson(server.url), 'not-json')
  }
  body = 'root:x:0:0'
  const error: Error = await outgoing.getJson(`${server.url}/?key=hidden`).then(
    () => assert.fail(),
    (error) => error,
  )
  assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /root|hidden/)
})

test('refuses a response above the size limit, with or without a declared length', async () => {
  let declared = false
  let length = 0
  let sent = 0
  using server = await startServer(async (_, response) => {
    response.on('error', () => {})
    if (declared) response.setHeader('content-length', length)
    response.write('"')
    for (sent = 2; sent < length; sent++) response.write('x')
    response.end('"')
  })
  const outgoing = createOutgoing(everything)
  for (declared of [true, false]) {
    length = 1000
    assert.equal(String(await outgoing.getJson(server.url, { maxBytes: 1000 })).length, 998)
    length = 1001
    await failsWith(outgoing.getJson(server.url, { maxBytes: 1000 }), 'too-large')
  }
})

test('a response has at most 512 KiB by default, and an endless one is not read to its end', async () => {
  let length = 0
  using server = await startServer((_, response) => response.end(`"${'x'.repeat(length - 2)}"`))
  length = 512 * 1024
  assert.equal(String(await createOutgoing(everything).getJson(server.url)).length, length - 2)
  length++
  await failsWith(createOutgoing(everything).getJson(server.url), 'too-large')

  using endless = await startServer((_, response) => {
    const chunk = 'x'.repeat(65_536)
    const more = () => {
      while (response.write(chunk) && !response.destroyed);
    }
    response.on('drain', more)
    more()
  })
  await failsWith(createOutgoing(everything).getJson(endless.url), 'too-large')
})

test('refuses a compressed response', async () => {
  let encoding = ''
  using server = await startServer((_, response) => {
    response.setHeader('content-encoding', encoding).end(encoding === 'Identity' ? '1' : gzipSync('1'))
  })
  for (encoding of ['gzip', 'br', 'deflate', 'identity, gzip']) {
    await failsWith(createOutgoing(everything).getJson(server.url), 'encoding', encoding)
  }
  encoding = 'Identity'
  assert.equal(await createOutgoing(everything).getJson(server.url), 1)
})

test('ends a request in time, whenever the other side stalls', async () => {
  const timeoutMs = 100
  const slow = async (url: string, lookup?: Lookup) => {
    await failsWith(createOutgoing({ ...everything, ...(lookup && { lookup }) }).getJson(url, { timeoutMs }), 'timeout')
  }
  await slow('http://issuer.test/', () => {})

  using silent = await startServer(() => {})
  await slow(silent.url)

  using trickling = await startServer((_, response) => {
    response.write('[')
    const timer = setInterval(() => response.write('1,'), 10)
    response.on('close', () => clearInterval(timer))
  })
  await slow(trickling.url)

  using stalling = await startServer((_, response) => void response.writeHead(200, { 'content-length': 10 }).write('['))
  await slow(stalling.url)

  using circling = await startServer((_, response) => {
    setTimeout(() => response.writeHead(302, { location: '/' }).end(), 60)
  })
  await slow(circling.url)
})

test('reports a server as unreachable if it disconnects, uses another protocol or does not exist', async () => {
  const speak = async (text: string, scheme = 'http') => {
    const server = createTcpServer(
      (socket) =>
        void socket
          .on('error', () => {})
          .resume()
          .end(text),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`
    try {
      await failsWith(createOutgoing(everything).getJson(url), 'unreachable', text)
    } finally {
      server.close()
    }
    return url
  }
  await speak('')
  await speak('SSH-2.0-OpenSSH\r\n')
  await speak('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1]')
  await speak('HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n[1]')
  await speak(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n1`)
  await speak('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n1')
  await speak('HTTP/1.1 200 OK\r\n\r\n1', 'https')
  const gone = await speak('')
  await failsWith(createOutgoing(everything).getJson(gone), 'unreachable')

  const lookup: Lookup = (_, __, callback) => callback(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
  await failsWith(createOutgoing({ ...everything, lookup }).getJson('https://issuer.test/'), 'unreachable')
  await failsWith(createOutgoing({ ...everything, ...resolverOf() }).getJson('https://issuer.test/'), 'unreachable')
})

test('connects to private addresses only for host names on the list', async () => {
  using server = await startServer((_, response) => response.end('1'))
  const allowed = privateAddresses(['idp.corp.internal'])
  const outgoing = createOutgoing({ allowed, allowHttp: true, ...resolverOf('127.0.0.1') })
  assert.equal(await outgoing.getJson(`http://idp.corp.internal:${server.port}/`), 1)
  await failsWith(outgoing.getJson(`http://other.corp.internal:${server.port}/`), 'private-address')
  await failsWith(outgoing.getJson(`http://127.0.0.1:${server.port}/`), 'private-address')
  const metadata = createOutgoing({ allowed, allowHttp: true, ...resolverOf('127.0.0.1', '169.254.169.254') })
  await failsWith(metadata.getJson(`http://idp.corp.internal:${server.port}/`), 'private-address')
  const ranges = createOutgoing({ allowed: privateAddresses(['127.0.0.0/8']), allowHttp: true, lookup: noLookup })
  assert.equal(await ranges.getJson(`http://127.0.0.1:${server.port}/`), 1)
  await failsWith(ranges.getJson(`http://[::1]:${server.port}/`), 'private-address')
})
