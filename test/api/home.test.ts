import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { startPinfold } from '../support/pinfold.ts'
import { startSignInScene } from '../support/sign-in.ts'

test('GET / from a browser returns a page about the server, with working links', async () => {
  await using pinfold = await startPinfold()
  const page = await fetch(`${pinfold.url}/`, { headers: { accept: 'text/html' } })
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  const text = await page.text()
  assert.match(text, /records every update of every tag/)
  assert.match(text, new RegExp(`docker login ${new URL(pinfold.url).host}<`))
  const links = [...text.matchAll(/href="([^"]+)"/g)].map((match) => match[1]!)
  assert.deepEqual(links, ['/ui/', '/docs', '/openapi.json'])
  for (const link of links) assert.equal((await fetch(pinfold.url + link)).status, 200, link)
})

test('GET / from other programs returns plain text, and POST / returns 405', async () => {
  await using pinfold = await startPinfold()
  const res = await fetch(`${pinfold.url}/`)
  assert.match(res.headers.get('content-type') ?? '', /^text\/plain/)
  assert.match(await res.text(), new RegExp(`^reference {2}${pinfold.url}/docs$`, 'm'))
  assert.equal((await fetch(`${pinfold.url}/`, { method: 'POST' })).status, 405)
  assert.equal((await fetch(`${pinfold.url}/`, { method: 'HEAD' })).status, 200)
})

test('GET / redirects a signed-in browser to the console, until its session ends', async () => {
  await using scene = await startSignInScene()
  const { url } = scene.pinfold
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const led = await browser.ask(`${url}/`)
  assert.deepEqual([led.status, led.headers.get('location')], [303, '/ui/'])
  assert.equal((await browser.ask(`${url}/`, { headers: { accept: '*/*' } })).status, 200)
  const own = { 'sec-fetch-site': 'same-origin' }
  const { sessions } = JSON.parse((await browser.ask(`${url}/ui/api/control/v1/sessions`, { headers: own })).text)
  await browser.ask(`${url}/ui/api/control/v1/sessions/${sessions[0].uid}`, { method: 'DELETE', headers: own })
  const left = await browser.ask(`${url}/`)
  assert.equal(left.status, 200)
  assert.match(left.text, /records every update of every tag/)
})
