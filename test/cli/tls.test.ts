import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import grpc from '@grpc/grpc-js'
import { createStorage, run, runProcess, startInProcess, startProcess, tokenOf } from '../support/process.ts'
import { connectRaw, takeResponse } from '../support/raw-http.ts'

let folder: string

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'pinfold-tls-'))
  for (const name of ['first', 'second']) {
    const files = ['-keyout', join(folder, `${name}.key`), '-out', join(folder, `${name}.crt`)]
    const named = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', ...kind, ...files, ...named], { stdio: 'ignore' })
  }
})
after(() => rmSync(folder, { recursive: true, force: true }))

const file = (name: string) => join(folder, name)
const flags = (cert: string, key: string) => ['--tls-cert', file(cert), '--tls-key', file(key)]
const portOf = (url: string) => Number(new URL(url).port)

/** Certificate of the server, and negotiated parameters of a handshake that accepts each certificate. */
async function handshake(url: string, options: tls.ConnectionOptions = {}) {
  const socket = tls.connect({ port: portOf(url), host: 'localhost', rejectUnauthorized: false, ...options })
  await once(socket, 'secureConnect')
  const { subject } = socket.getPeerCertificate()
  const agreed = { name: subject.CN, alpn: socket.alpnProtocol, version: socket.getProtocol() }
  socket.destroy()
  return agreed
}

async function get(url: string, ca: string, path: string) {
  const req = https.get(new URL(path, url), { ca: readFileSync(file(ca)), agent: false })
  const [res] = await once(req, 'response')
  let text = ''
  for await (const chunk of res) text += chunk
  return { status: res.statusCode as number, headers: res.headers, text }
}

test('with a certificate, the port serves REST, HTTP/2 and gRPC over TLS, and the server URL is https', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage, { args: flags('first.crt', 'first.key') })
  assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const ca = readFileSync(file('first.crt'))

  const challenge = await get(server.url, 'first.crt', '/v2/')
  assert.equal(challenge.status, 401)
  assert.ok(challenge.headers['www-authenticate']?.includes(`realm="${server.url}/token"`))
  const discovery = await get(server.url, 'first.crt', '/.well-known/openid-configuration')
  assert.equal(JSON.parse(discovery.text).issuer, server.url)

  const session = http2.connect(server.url, { ca })
  const stream = session.request({ ':path': '/healthz' })
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  session.destroy()

  const channel = new grpc.Client(new URL(server.url).host, grpc.credentials.createSsl(ca))
  const health = await new Promise<Buffer>((resolve, reject) =>
    channel.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      Buffer.alloc(0),
      (error, answer) => (error ? reject(error) : resolve(answer!)),
    ),
  )
  assert.deepEqual([...health], [8, 1])
  channel.close()

  assert.equal((await handshake(server.url)).alpn, false)
  assert.equal((await handshake(server.url, { ALPNProtocols: ['h2'] })).alpn, 'h2')
  assert.equal((await handshake(server.url, { ALPNProtocols: ['h2', 'http/1.1'] })).alpn, 'http/1.1')
  assert.equal((await handshake(server.url, { maxVersion: 'TLSv1.2' })).version, 'TLSv1.2')
  const address = ['--listen', new URL(server.url).host]
  assert.equal((await run(['health', ...address, ...flags('first.crt', 'first.key')])).code, 0)
  const plain = await run(['health', ...address])
  assert.match(plain.stderr, /not ready: \/readyz answered 400/)
  await assert.rejects(handshake(server.url, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }))
})

test('commands on the data folder reach a server whose certificate is for another host', async (t) => {
  await using storage = await createStorage()
  if (storage.database !== '') return t.skip('with PostgreSQL commands open the database')
  await using server = await startInProcess(storage, {
    args: [...flags('first.crt', 'first.key'), '--url', 'https://registry.test'],
  })
  assert.equal(server.url, 'https://registry.test')
  const { code, stderr } = await run(['server', 'quotas', 'list', ...storage.args], { env: storage.env })
  assert.equal(code, 0, stderr)
  assert.notEqual(await tokenOf(storage), '')
})

test('answers plain HTTP with a hint to use TLS, and closes a handshake that does not complete', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage, {
    args: flags('first.crt', 'first.key'),
    env: { PINFOLD_HEADERS_TIMEOUT_MS: '300' },
  })
  const port = portOf(server.url)
  for (const text of ['GET /v2/ HTTP/1.1\r\nhost: a\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x15']) {
    using connection = await connectRaw(port)
    connection.write(text)
    const { status, body } = await takeResponse(connection)
    assert.equal(status, 400)
    assert.match(JSON.parse(body).message, /this port requires TLS; use https:/)
    await connection.closed
  }
  for (const begin of [Buffer.alloc(0), Buffer.from([0x16]), Buffer.from([0x16, 3, 1, 2, 0, 1, 0])]) {
    using connection = await connectRaw(port)
    if (begin.length > 0) connection.write(begin)
    await connection.closed
  }
  const silent = tls.connect({ port, host: 'localhost', rejectUnauthorized: false })
  await once(silent, 'secureConnect')
  silent.resume().on('error', () => {})
  await once(silent, 'close')
  using reset = await connectRaw(port)
  reset.write(Buffer.from([0x16, 3, 1]))
  reset.end()
  await reset.closed
  assert.equal((await get(server.url, 'first.crt', '/healthz')).status, 200)
})

test('uses a new certificate after SIGUSR2, and keeps the old one if the new one is invalid', async () => {
  copyFileSync(file('first.crt'), file('live.crt'))
  copyFileSync(file('first.key'), file('live.key'))
  await using storage = await createStorage()
  await using server = await startProcess(storage, { args: flags('live.crt', 'live.key') })
  const kept = new https.Agent({ keepAlive: true, ca: readFileSync(file('first.crt')) })
  const over = async () => {
    const req = https.get(new URL('/healthz', server.url), { agent: kept })
    const [res] = await once(req, 'response')
    res.resume()
    await once(res, 'end')
    return req.reusedSocket
  }
  assert.equal(await over(), false)

  // Only one file of a new pair, as during a replacement, and then a file that is not a certificate.
  copyFileSync(file('second.crt'), file('live.crt'))
  server.kill('SIGUSR2')
  await said(server, /PINFOLD_TLS_KEY: the key does not belong to the first certificate/)
  assert.equal((await handshake(server.url)).name, 'first')
  writeFileSync(file('live.crt'), 'nonsense')
  server.kill('SIGUSR2')
  await said(server, /PINFOLD_TLS_CERT: the file must have a certificate/)
  rmSync(file('live.crt'))
  server.kill('SIGUSR2')
  await said(server, /PINFOLD_TLS_CERT: cannot read/)
  assert.equal((await handshake(server.url)).name, 'first')

  copyFileSync(file('second.crt'), file('live.crt'))
  copyFileSync(file('second.key'), file('live.key'))
  server.kill('SIGUSR2')
  while ((await handshake(server.url)).name !== 'second');
  assert.equal((await get(server.url, 'second.crt', '/healthz')).status, 200)
  assert.equal(await over(), true, 'a connection from before is still served')
  kept.destroy()
})

test('a server with a mismatched certificate and key does not start, and names the setting', async () => {
  await using storage = await createStorage()
  writeFileSync(file('empty'), '')
  const serve = (args: string[]) =>
    runProcess(['serve', ...storage.args, '--listen', '127.0.0.1:0', ...args], { env: storage.env })
  const cases: [string[], RegExp][] = [
    [['--tls-cert', file('first.crt')], /PINFOLD_TLS_CERT needs PINFOLD_TLS_KEY/],
    [[...flags('first.crt', 'first.key'), '--url', 'http://a.test'], /PINFOLD_URL must begin with https:/],
    [flags('none', 'first.key'), /PINFOLD_TLS_CERT: cannot read .*none/],
    [flags('first.crt', 'empty'), /PINFOLD_TLS_KEY: the file must have an unencrypted private key/],
    [flags('empty', 'first.key'), /PINFOLD_TLS_CERT: the file must have a certificate/],
    [flags('first.crt', 'second.key'), /PINFOLD_TLS_KEY: the key does not belong/],
  ]
  for (const [args, message] of cases) {
    const { code, stderr } = await serve(args)
    assert.notEqual(code, 0)
    assert.match(stderr, message)
    assert.ok(!stderr.includes('    at '), stderr)
  }
})

/** Waits until the server has logged the message. */
async function said(server: { output: { stderr: string } }, pattern: RegExp): Promise<void> {
  while (!pattern.test(server.output.stderr)) await new Promise((resolve) => setImmediate(resolve))
}
