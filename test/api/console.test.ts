// Page and files of the console, and the API behind its cookie.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getOption } from '@bufbuild/protobuf'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { builtInRoles } from '#domains/iam/access/built-in-roles.ts'
import { backfillLedgers, sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { iam } from '#gen/pinfold/annotations/annotations_pb.ts'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { runJob } from '../support/background-jobs.ts'
import { openBrowser } from '../support/browser.ts'
import { optionalScopeOf, restCalls } from '../support/endpoints.ts'
import { roleUids } from '../support/pinfold.ts'
import { startSignInScene } from '../support/sign-in.ts'
import { plantTag } from '../support/tags.ts'

const own = { 'sec-fetch-site': 'same-origin' }
const json = { ...own, 'content-type': 'application/json' }

test('each URL of the console returns the same page, with a CSP for its own paths only', async () => {
  await using scene = await startSignInScene()
  const { url } = scene.pinfold
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const assets = `${url}/ui/assets/`
  const policy = [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets}`,
    `font-src ${assets}`,
    `img-src ${assets}`,
    `connect-src ${url}/ui/api/`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  for (const path of ['/ui/', '/ui/r/acme/app/~/tags/v1?at=x', '/ui/nothing/here']) {
    const page = await browser.ask(url + path)
    assert.equal(page.status, 200)
    assert.equal(page.headers.get('cache-control'), 'no-store')
    assert.equal(page.headers.get('content-security-policy'), policy)
    // Decision 91 says why it is not `no-referrer`.
    assert.equal(page.headers.get('referrer-policy'), 'same-origin')
    assert.doesNotMatch(page.text, /<script(?![^>]* src=)|<style| on[a-z]+=/)
  }
  const posted = await browser.ask(`${url}/ui/r/acme`, { method: 'POST', headers: own })
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET'])
})

test('assets have a content hash in their path and are cached forever; returns 404 for other paths', async () => {
  await using scene = await startSignInScene()
  const { url } = scene.pinfold
  scene.somebody()
  const browser = openBrowser()
  const { text } = await scene.enter(browser)
  const files = [...text.matchAll(/(?:src|href)="(\/ui\/assets\/[^"]+)"/g)].map((match) => match[1]!)
  const endings = files.map((file) => file.slice(file.lastIndexOf('.') + 1))
  assert.deepEqual([...new Set(endings)].sort(), ['css', 'js', 'svg', 'woff2'])
  for (const file of files) {
    const isFont = file.endsWith('.woff2')
    const res = await fetch(url + file)
    assert.equal(res.status, 200)
    assert.match(res.headers.get('cache-control')!, /immutable/)
    assert.equal(res.headers.get('x-content-type-options'), 'nosniff')
    assert.equal(res.headers.get('content-encoding'), isFont ? null : 'gzip')
    const plain = await fetch(url + file, { headers: { 'accept-encoding': 'identity' } })
    assert.equal(plain.headers.get('content-encoding'), null)
    assert.equal(await plain.text(), await res.text())
    assert.equal((await fetch(url + file.replace(/[0-9a-f]{16}/, '0'.repeat(16)))).status, 404)
  }
})

test('the session cookie has the rights of its user, and works only for the console', async () => {
  await using scene = await startSignInScene()
  const { url } = scene.pinfold
  const { uid, email } = scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const who = await browser.ask(`${url}/ui/api/auth/v1/ok`, { headers: own })
  assert.equal(who.status, 200)
  assert.equal(JSON.parse(who.text).subject, uid)
  assert.equal(JSON.parse(who.text).profile.name.length > 0, true)
  assert.equal((await browser.ask(`${url}/auth/v1/ok`, { headers: own })).status, 401)
  const sessions = await browser.ask(`${url}/ui/api/control/v1/sessions`, { headers: own })
  const [session] = JSON.parse(sessions.text).sessions
  assert.deepEqual([session.current, session.email], [true, email])

  const stranger = await openBrowser().ask(`${url}/ui/api/auth/v1/ok`, { headers: own })
  assert.deepEqual([stranger.status, JSON.parse(stranger.text).code], [401, 16])
  scene.somebody()
  const bearer = { ...own, authorization: `Bearer ${(await scene.open()).get('token')}` }
  assert.equal((await openBrowser().ask(`${url}/ui/api/auth/v1/ok`, { headers: bearer })).status, 401)
  assert.equal(JSON.parse((await browser.ask(`${url}/ui/api/auth/v1/ok`, { headers: bearer })).text).subject, uid)
  assert.equal((await browser.ask(`${url}/ui/api/no/such/path`, { headers: own })).status, 404)

  await browser.ask(`${url}/ui/api/control/v1/sessions/${session.uid}`, { method: 'DELETE', headers: own })
  assert.equal((await browser.ask(`${url}/ui/api/auth/v1/ok`, { headers: own })).status, 401)
})

test('a page of one user cannot act as another user who has signed in since', async () => {
  await using scene = await startSignInScene()
  const { url } = scene.pinfold
  const browser = openBrowser()
  const first = scene.somebody().uid
  assert.match((await scene.enter(browser)).text, new RegExp(`data-uid="${first}"`))
  const ask = (user: string, path = '/auth/v1/ok') =>
    browser.ask(`${url}/ui/api${path}`, { headers: { ...own, 'pinfold-user': user } })
  assert.equal((await ask(first)).status, 200)
  // As after a sign-out here and at the provider, in another tab.
  for (const site of [url, scene.company.url]) browser.cookies(site).clear()
  const second = scene.somebody().uid
  await scene.enter(browser)
  for (const path of ['/auth/v1/ok', '/iam/v2/groups']) {
    const refused = await ask(first, path)
    assert.equal(refused.status, 401)
    assert.match(
      refused.text,
      /another user has signed in with this browser since the page was loaded; reload the page/,
    )
    assert.equal((await ask(second, path)).status, 200)
  }
})

test('a page of another origin cannot send requests with the session of a user', async () => {
  await using scene = await startSignInScene()
  const { url } = scene.pinfold
  const { uid } = scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const { code } = (await scene.pinfold.seed.invite(scene.org.uid, roleUids.owner)) as { code: string }
  await scene.accept(browser, code)
  const make = (headers: Record<string, string>) =>
    browser.ask(`${url}/ui/api/iam/v2/groups/${scene.org.uid}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ name: `made-by-${uid.slice(0, 8)}` }),
    })
  const forged = [
    {},
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example.com' },
    { 'sec-fetch-site': 'same-site', origin: url },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
  ]
  for (const headers of forged) assert.equal((await make(headers)).status, 403, JSON.stringify(headers))
  const read = await browser.ask(`${url}/ui/api/auth/v1/ok`, { headers: { 'sec-fetch-site': 'cross-site' } })
  assert.equal(read.status, 403)
  assert.equal((await browser.ask(`${url}/ui/api/auth/v1/ok`)).status, 200)
  assert.equal((await make({ origin: url })).status, 200)
  assert.equal((await make(own)).status, 409)
})

test('refuses forged writes with the cookie of a viewer', async () => {
  await using scene = await startSignInScene()
  const { url, seed } = scene.pinfold
  scene.somebody()
  const { code } = (await seed.invite(scene.org.uid, roleUids.viewer)) as { code: string }
  const browser = openBrowser()
  await scene.accept(browser, code)
  const seen = await browser.ask(`${url}/ui/api/iam/v2/groups?uidp.inRoot=true`, { headers: own })
  assert.equal(JSON.parse(seen.text).groups[0].uid, scene.org.uid)
  const at = scene.org.uid
  const writes: [string, string, object?][] = [
    ['POST', `/iam/v2/groups/${at}`, { name: 'x' }],
    ['PATCH', `/iam/v2/groups/${at}`, { description: 'x' }],
    ['DELETE', `/iam/v2/groups/${at}`],
    ['POST', `/iam/v2/identities/${at}`, { name: 'x', claimMatch: { issuer: 'https://x.example', subject: 'x' } }],
    ['POST', `/iam/v2/roles/${at}`, { name: 'x' }],
    ['POST', `/iam/v2/roleBindings/${at}`, { identityUid: at, roleUid: roleUids.owner }],
    ['POST', `/iam/v2/groupInvites/${at}`, { roleUid: roleUids.owner }],
    ['POST', `/registry/v2/repos/${at}`, { name: 'x' }],
    ['POST', `/events/v2/subscriptions/${at}`, { sink: 'https://x.example' }],
    ['DELETE', `/iam/v2/identityProviders/${scene.idp.uid}`],
    ['POST', `/iam/v2/identityProviders/${scene.idp.uid}:generateScimToken`, {}],
    ['POST', '/control/v1/consoleCodes', {}],
  ]
  for (const [method, path, body] of writes) {
    const init = { method, headers: json, ...(body && { body: JSON.stringify(body) }) }
    assert.equal((await browser.ask(`${url}/ui/api${path}`, init)).status, 403, `${method} ${path}`)
  }
})

test('refuses each write of the contract that a viewer has no permission for, with the cookie of the viewer', async () => {
  await using scene = await startSignInScene()
  const { url, seed } = scene.pinfold
  scene.somebody()
  const { code } = (await seed.invite(scene.org.uid, roleUids.viewer)) as { code: string }
  const browser = openBrowser()
  await scene.accept(browser, code)
  const held = builtInRoles.find(({ name }) => name === 'viewer')!.capabilities
  const writes = buildEndpoints(services).flatMap(({ desc }) => {
    const { mode } = getOption(desc, iam)
    if (mode.case !== 'enabled') return []
    const { capabilities, unscoped } = mode.value
    const isRefused = capabilities.some((one) => !held.includes(one))
    // A method without a group in its request looks up all groups of the caller. The tests of these methods check that.
    if (!isRefused || (unscoped && !optionalScopeOf(desc) && !capabilities.includes(Capability.CAP_INTERNAL))) return []
    return restCalls(desc, `${scene.org.uid}/0123456789abcdef`).filter(({ verb }) => verb !== 'GET')
  })
  assert.ok(writes.length > 100, `${writes.length} writes`)
  for (const { verb: method, path, body } of writes) {
    const init = { method, headers: json, ...(body && { body: JSON.stringify(body) }) }
    assert.equal((await browser.ask(`${url}/ui/api${path}`, init)).status, 403, `${method} ${path}`)
  }
})

test('the session cookie can read proofs and the policy of a log, but no other log path', async () => {
  await using scene = await startSignInScene()
  const { pinfold, org } = scene
  const { url, operator } = pinfold
  const repo = await pinfold.seed.repo(org.uid, { name: 'app' })
  await plantTag(pinfold, repo.uid, 'stable')
  await runJob(pinfold.app, backfillLedgers)
  await runJob(pinfold.app, sequenceLedgers)
  const proof = `/ledger/${org.uid}/repos/${repo.uid}/tags/stable/proof`
  const policy = `/ledger/${org.uid}/policy`
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  for (const path of [proof, policy]) {
    const read = await browser.ask(`${url}/ui/api${path}`, { headers: own })
    assert.deepEqual([read.status, read.text], [200, (await operator.get(path)).text])
    assert.equal((await browser.ask(url + path, { headers: own })).status, 401)
    assert.equal((await openBrowser().ask(`${url}/ui/api${path}`, { headers: own })).status, 401)
    const bearer = { ...own, authorization: `Bearer ${operator.token}` }
    assert.equal((await openBrowser().ask(`${url}/ui/api${path}`, { headers: bearer })).status, 401)
    assert.equal(
      (await browser.ask(`${url}/ui/api${path}`, { headers: { 'sec-fetch-site': 'cross-site' } })).status,
      403,
    )
    assert.equal((await browser.ask(`${url}/ui/api${path}`, { method: 'POST', headers: own })).status, 405)
  }
  for (const path of [`/ledger/${org.uid}/checkpoint`, '/ledger/witness/key', '/ledger/']) {
    assert.equal((await browser.ask(`${url}/ui/api${path}`, { headers: own })).status, 404, path)
  }
  const other = await pinfold.seed.group('')
  const theirs = await pinfold.seed.repo(other.uid, { name: 'app' })
  const hidden = `/ui/api/ledger/${other.uid}/repos/${theirs.uid}/tags/stable/proof`
  assert.equal((await browser.ask(url + hidden, { headers: own })).status, 403)
})
