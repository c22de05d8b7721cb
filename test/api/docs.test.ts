// The reference at /docs: every method has a page, every link has a target, and pages contain no scripts.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const get = (path: string) => pinfold.anonymous.get(path)
const linksOf = (html: string) => [...html.matchAll(/<a href="([^"]*)">/g)].map((match) => match[1]!)

test('each link in the documentation leads to an existing page and anchor', async () => {
  const pages = new Map<string, string>()
  const links: string[] = ['/docs']
  for (const link of links) {
    const [path] = link.split('#') as [string]
    if (pages.has(path)) continue
    assert.match(path, /^\/docs(?:\/[\w.]+)?$/, link)
    const { status, text, headers } = await get(path)
    assert.equal(status, 200, link)
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    pages.set(path, text)
    links.push(...linksOf(text))
  }
  assert.ok(pages.size > services.length)
  for (const link of new Set(links)) {
    const [path, anchor] = link.split('#') as [string, string?]
    if (anchor) assert.ok(pages.get(path)!.includes(` id="${anchor}"`), link)
  }
  const all = [...pages.values()].join('')
  for (const { method } of buildEndpoints(services))
    assert.ok(all.includes(`<code>${method.fullName}</code>`), method.fullName)
})

test('the page of a method shows its fields, permissions and response', async () => {
  const { text } = await get('/docs/registry.v2.ReposService')
  const part = /<h2 id="createrepo">[\s\S]*?(?=<h2)/.exec(text)![0]
  for (const said of [
    '<code>POST /registry/v2/repos/{parent}</code>',
    '<code>pinfold.platform.registry.v2.ReposService/CreateRepo</code>',
    '<code>create_repo</code>',
    '<code>repo.create</code> at <code>parent</code>',
    '<code>dev.pinfold.api.platform.registry.repo.created.v1</code>',
    '<code>ALREADY_EXISTS</code>',
    '&quot;name&quot;: &quot;worker&quot;',
  ]) {
    assert.ok(part.includes(said), said)
  }
})

test('a documentation page can load only its stylesheet, and contains no script', async () => {
  for (const path of ['/docs', '/docs/', '/docs/errors', '/docs/iam.v2.GroupsService']) {
    const { text, headers } = await get(path)
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)![1]!
    const hash = createHash('sha256').update(style).digest('base64')
    assert.equal(
      headers.get('content-security-policy'),
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    )
    assert.doesNotMatch(text, /<script|<!--|javascript:| on[a-z]+=/i)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
  }
})

test('returns 404 for paths that are no documentation page', async () => {
  for (const path of [
    '/docs/nothing',
    '/docs/README',
    '/docs/../package.json',
    '/docs/%2e%2e/config',
    '/docs/errors.md',
    '/docs/errors/',
  ]) {
    const { status, text } = await get(path)
    assert.equal(status, 404, path)
    assert.ok(!text.includes('<'), path)
  }
  assert.equal((await get('/docsx')).body.code, 5, 'that is a path of the API')
  const posted = await pinfold.anonymous.post('/docs')
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  const head = await pinfold.anonymous.call('HEAD', '/docs')
  assert.deepEqual([head.status, head.text, Number(head.headers.get('content-length')) > 1000], [200, '', true])
})
