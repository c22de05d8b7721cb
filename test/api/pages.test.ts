// Pages in a browser: accepted host names, and refused redirects.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

type Got = { status: number; headers: Record<string, unknown>; text: string }

function get({ listenPort }: Pinfold, path: string, headers: Record<string, string>, method = 'GET'): Promise<Got> {
  return new Promise((resolve, reject) => {
    request({ port: listenPort, host: '127.0.0.1', path, method, headers }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      res.on('end', () => resolve({ status: res.statusCode!, headers: res.headers, text }))
    })
      .on('error', reject)
      .end()
  })
}

const browser = { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' }
const hostOf = ({ url }: Pinfold) => new URL(url).host

test('the authorization endpoint redirects only to allowed addresses', async () => {
  await using pinfold = await startPinfold()
  const host = hostOf(pinfold)
  const discovery = await pinfold.anonymous.get('/.well-known/openid-configuration')
  const { pathname } = new URL(discovery.body.authorization_endpoint)
  assert.equal(pathname, '/oauth')

  const page = await get(pinfold, `${pathname}?redirect=https://evil.example.com`, { host, ...browser })
  assert.deepEqual([page.status, page.headers['content-type']], [400, 'text/html; charset=utf-8'])
  assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-[^']+'; /)
  assert.equal(page.headers['referrer-policy'], 'same-origin')
  assert.match(String(page.headers['content-security-policy']), /form-action 'self'.*frame-ancestors 'none'/)
  assert.equal(page.headers['x-content-type-options'], 'nosniff')
  assert.equal(page.headers['cache-control'], 'no-store')
  assert.equal(page.headers.location, undefined)
  assert.doesNotMatch(page.text, /evil/)

  const answer = await get(pinfold, pathname, { host, accept: 'application/json' })
  assert.deepEqual([answer.status, answer.headers['content-type']], [400, 'text/plain; charset=utf-8'])
  assert.match(answer.text, /redirect/)
  assert.equal((await get(pinfold, pathname, { host, ...browser }, 'HEAD')).text, '')
  const posted = await get(pinfold, pathname, { host }, 'POST')
  assert.deepEqual([posted.status, posted.headers.allow], [405, 'GET, HEAD'])
})

test('redirects pages from another configured host name to the configured URL, and refuses unknown hosts', async () => {
  await using pinfold = await startPinfold({ url: 'https://registry.example.com', hosts: ['mirror.internal'] })
  for (const host of ['mirror.internal', 'team.registry.example.com']) {
    const moved = await get(pinfold, '/oauth?a=b&c', { host, ...browser })
    assert.deepEqual([moved.status, moved.headers.location], [307, 'https://registry.example.com/oauth?a=b&c'], host)
  }
  for (const host of ['evil.example.com', 'localhost', '-.registry.example.com', '']) {
    const refused = await get(pinfold, '/oauth', { host, ...browser })
    assert.deepEqual([refused.status, refused.headers.location], [421, undefined], host)
    assert.match(refused.text, /PINFOLD_HOSTS/)
    assert.doesNotMatch(refused.text, /evil/)
  }
  assert.equal((await get(pinfold, '/oauth', { host: 'registry.example.com' })).status, 400)
  // Programs can read the documents of the issuer under any host name.
  const keys = await get(pinfold, '/.well-known/jwks.json', { host: 'evil.example.com' })
  assert.equal(keys.status, 200)
})

test('redirects pages from other loopback names to the configured URL', async () => {
  await using pinfold = await startPinfold()
  const moved = await get(pinfold, '/oauth', { host: `localhost:${pinfold.port}`, ...browser })
  assert.deepEqual([moved.status, moved.headers.location], [307, `${pinfold.url}/oauth`])
})

test('behind a proxy that terminates TLS, a page does not redirect to itself', async () => {
  await using pinfold = await startPinfold({ trustedProxies: ['127.0.0.1'], url: 'http://registry.example.com' })
  const headers = { host: 'registry.example.com', 'x-forwarded-proto': 'https', ...browser }
  assert.equal((await get(pinfold, '/oauth', headers)).status, 400)
})
