// The example of an identity provider, as its page is used.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { project } from '../support/process.ts'

test('people sign in with the example of an identity provider', async () => {
  await using pinfold = await startPinfold({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'] })
  const { url, seed, operator } = pinfold
  const example = spawn(process.execPath, [join(project, 'examples/people-provider.ts'), '0', url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line] = (await once(example.stdout.setEncoding('utf8'), 'data')) as [string]
    const issuer = /^ready (\S+)$/m.exec(line)![1]!
    const org = await seed.group('', { name: 'acme' })
    const oidc = { issuer, clientId: 'pinfold', clientSecret: 'example-secret', additionalScopes: ['email', 'profile'] }
    const { uid } = await seed.provider(org.uid, issuer, { oidc, defaultRole: roleUids.viewer })
    const browser = openBrowser()
    const page = await browser.go(`${url}/ui/signin/start?${new URLSearchParams({ idp: uid, return: '/ui/' })}`)
    assert.match(page.text, /Sign in as Grace Hopper/)
    const signedIn = await browser.submit(page.url, { person: 'grace' })
    assert.match(signedIn.text, /data-name="Grace Hopper" data-email="grace@acme\.example"/)
    const { body } = await operator.get(`/iam/v2/identities?name=${encodeURIComponent('Grace Hopper')}`)
    assert.equal(body.identities.length, 1)
  } finally {
    example.kill()
    await once(example, 'exit')
  }
})
