// The link that lets one browser in as the operator.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBrowser } from '../support/browser.ts'
import { makePlace, run, startProcess } from '../support/process.ts'

test('pinfold console prints a link that one browser enters with, and serve prints no link into a file', async () => {
  await using place = await makePlace()
  const command = () => run(['console', ...place.args], { env: place.env })
  await using server = await startProcess(place)
  while (!server.output.stdout.includes('\nIn a browser, as the operator: bin/pinfold console')) await sleep(20)
  const { code, stdout, stderr } = await command()
  assert.deepEqual([code, stderr], [0, ''])
  const link = new URL(stdout.trim())
  assert.deepEqual([link.origin, link.pathname, link.hash.length], [server.url, '/ui/enter', 44])

  const page = await fetch(`${server.url}/ui/enter`)
  const [, source] = /script-src '(sha256-[^']+)'/.exec(page.headers.get('content-security-policy')!)!
  const [, script] = /<script>([^<]+)<\/script>/.exec(await page.text())!
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(script))
  assert.equal(source, `sha256-${Buffer.from(digest).toString('base64')}`)

  const entered = await openBrowser().submit(`${server.url}/ui/enter`, { code: link.hash.slice(1) })
  assert.match(entered.text, /the operator/)
  assert.equal((await openBrowser().submit(`${server.url}/ui/enter`, { code: link.hash.slice(1) })).status, 403)
  assert.doesNotMatch(server.output.stdout + server.output.stderr, /#|enter/)
})

test('without a server there is nothing to open', async () => {
  await using place = await makePlace()
  const { code, stdout, stderr } = await run(['console', ...place.args], { env: place.env })
  assert.deepEqual([code, stdout], [69, ''])
  assert.equal(stderr, 'pinfold: no server runs that it could open; start it first\n')
})
