// Sign-in and sign-out with the values that docs/guides/add-single-sign-on.md says to enter.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { ok } from '../support/expect.ts'
import { clientSecret, startPeopleProvider } from '../support/people-provider.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'

const page = readFileSync(new URL('../../docs/guides/add-single-sign-on.md', import.meta.url), 'utf8')

/** Each code span in a row of a table. */
function valuesOf(field: string): string[] {
  const row = page.split('\n').find((line) => line.startsWith(`| ${field} |`))
  assert.ok(row, field)
  return [...row.matchAll(/`([^`]+)`/g)].map((match) => match[1]!)
}

test('the settings in the Keycloak guide work', async () => {
  await using company = await startPeopleProvider()
  await using pinfold = await startPinfold({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'] })
  const org = await pinfold.seed.group()
  const body = JSON.parse(/```json\n(.*?)```/s.exec(page)![1]!) as Json
  assert.deepEqual(valuesOf('Client ID'), [body.oidc.clientId])
  assert.deepEqual(valuesOf('Token Claim Name'), [body.oidc.groupsClaim])
  const oidc = { ...body.oidc, issuer: company.url, clientSecret }
  const made = ok(
    await pinfold.operator.post(`/iam/v2/identityProviders/${org.uid}`, {
      ...body,
      defaultRole: roleUids.viewer,
      oidc,
    }),
  )
  const here = (text: string) => text.replace('https://registry.example.com', pinfold.url).replace('PROVIDER', made.uid)
  company.register(valuesOf('Valid redirect URIs').map(here), {
    post_logout_redirect_uris: valuesOf('Valid post logout redirect URIs').map(here),
    backchannel_logout_uri: here(valuesOf('Backchannel logout URL')[0]!),
  })

  company.become('ada', { email: 'ada@acme.example', email_verified: true, name: 'Ada' })
  const [browser, other] = [openBrowser(), openBrowser()]
  const start = `${pinfold.url}/ui/signin/start?${new URLSearchParams({ idp: made.uid, return: '/ui/' })}`
  for (const one of [browser, other]) assert.match((await one.go(start)).text, /Ada/)
  const shown = await browser.submit(`${pinfold.url}/ui/signout`, {})
  const asked = await browser.go(/url=(.*)$/.exec(shown.headers.get('refresh')!)![1]!)
  const [action, xsrf] = [/<form[^>]* action="([^"]+)"/, /name="xsrf" value="([^"]+)"/].map((one) => {
    return one.exec(asked.text)![1]!
  })
  const back = await browser.submit(action!, { xsrf: xsrf!, logout: 'yes' })
  assert.equal(back.url, `${pinfold.url}/ui/signin`)
  // The other browser has a session of its own at the provider.
  assert.equal((await other.ask(`${pinfold.url}/ui/`)).status, 200)
})
