import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPinfold } from '../support/pinfold.ts'

test('a browser at the address of the server is told what it is, with links that lead somewhere', async () => {
  await using pinfold = await startPinfold()
  const page = await fetch(`${pinfold.url}/`, { headers: { accept: 'text/html' } })
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  const text = await page.text()
  assert.match(text, /remembers every move of every tag/)
  assert.match(text, new RegExp(`docker login ${new URL(pinfold.url).host}<`))
  const links = [...text.matchAll(/href="([^"]+)"/g)].map((match) => match[1]!)
  assert.deepEqual(links, ['/ui/', '/docs', '/openapi.json'])
  for (const link of links) assert.equal((await fetch(pinfold.url + link)).status, 200, link)
})

test('a program at the address of the server reads the same in lines, and cannot write there', async () => {
  await using pinfold = await startPinfold()
  const res = await fetch(`${pinfold.url}/`)
  assert.match(res.headers.get('content-type') ?? '', /^text\/plain/)
  assert.match(await res.text(), new RegExp(`^reference {2}${pinfold.url}/docs$`, 'm'))
  assert.equal((await fetch(`${pinfold.url}/`, { method: 'POST' })).status, 405)
  assert.equal((await fetch(`${pinfold.url}/`, { method: 'HEAD' })).status, 200)
})
