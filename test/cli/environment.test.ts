// Variables of the environment that many programs read: proxies, colors, and secrets with a line break.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { startPinfold } from '../support/pinfold.ts'
import { runProcess } from '../support/process.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

/** First line of each request that the proxy got, and its credentials. */
const asked: string[] = []
const proxy = createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', (data) => {
    const text = data.toString()
    asked.push([text.split('\r\n', 1)[0], /^proxy-authorization: (.*?)\r$/im.exec(text)?.[1]].filter(Boolean).join(' '))
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
  })
}).listen(0, '127.0.0.1')
await once(proxy, 'listening')
after(() => proxy.close())
const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`

const far = { PINFOLD_API: 'https://registry.invalid', PINFOLD_TOKEN: 'token' }
const near = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }

test('commands reach another machine through the proxy of HTTPS_PROXY', async () => {
  for (const env of [
    { HTTPS_PROXY: `http://u:p@${address}` },
    { https_proxy: address, HTTPS_PROXY: 'http://127.0.0.1:9' },
  ]) {
    asked.length = 0
    const { code, stderr } = await runProcess(['orgs', 'list'], { env: { ...far, ...env } })
    assert.equal(code, 69)
    assert.match(stderr, /the proxy of HTTPS_PROXY does not connect to it \(ERR_PROXY_TUNNEL\)/)
    const credentials = 'https_proxy' in env ? '' : ' Basic dTpw'
    // A command sends a request again if the connection breaks.
    assert.deepEqual([...new Set(asked)], [`CONNECT registry.invalid:443 HTTP/1.1${credentials}`])
  }
})

test('commands use no proxy for hosts of NO_PROXY and for this machine', async () => {
  asked.length = 0
  const env = { HTTPS_PROXY: `http://${address}`, HTTP_PROXY: `http://${address}` }
  const { code, stderr } = await runProcess(['orgs', 'list'], {
    env: { ...far, ...env, NO_PROXY: 'other.invalid,.invalid' },
  })
  assert.equal(code, 69)
  assert.match(stderr, /the host name does not exist|the DNS server does not answer/)
  assert.equal((await runProcess(['orgs', 'list'], { env: { ...near, ...env } })).code, 0)
  assert.deepEqual(asked, [])
})

test('refuses a proxy that is not a URL, without its password', async () => {
  const { code, stderr } = await runProcess(['orgs', 'list'], {
    env: { ...far, HTTPS_PROXY: 'socks5://u:secret@proxy' },
  })
  assert.equal(code, 78)
  assert.match(stderr, /^pinfold: HTTPS_PROXY is not valid: it must be the URL of a proxy, such as http:/)
  assert.doesNotMatch(stderr, /secret/)
})

test('prints no warning if NO_COLOR and FORCE_COLOR are both set', async () => {
  const { code, stderr } = await runProcess(['--version'], { env: { NO_COLOR: '1', FORCE_COLOR: '1' } })
  assert.deepEqual([code, stderr], [0, ''])
})

test('accepts a token that ends with a line break', async () => {
  const { code, stderr } = await runProcess(['orgs', 'list'], {
    env: { ...near, PINFOLD_TOKEN: `${near.PINFOLD_TOKEN}\n` },
  })
  assert.deepEqual([code, stderr], [0, ''])
})
