// Sign-out at a real provider: oidc-provider notifies the server by back-channel logout, and no other session ends.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Browser, openBrowser } from '../support/browser.ts'
import { ok } from '../support/expect.ts'
import { type SignInScene, startSignInScene } from '../support/sign-in.ts'

let scene: SignInScene
before(async () => {
  scene = await startSignInScene()
})
after(() => scene[Symbol.asyncDispose]())

const isIn = async (browser: Browser) => (await browser.ask(`${scene.pinfold.url}/ui/`)).status === 200
const statusOf = async (token: string) => (await scene.pinfold.withToken(token).get('/auth/v1/ok')).status

/** Confirms the sign-out on the page of the provider, and returns the final URL. */
async function agree(browser: Browser, url: string) {
  const asked = await browser.go(url)
  const { company } = scene
  assert.ok(asked.url.startsWith(company.url), asked.url)
  const action = /<form[^>]* action="([^"]+)"/.exec(asked.text)![1]!
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(asked.text)![1]!
  return browser.submit(action, { xsrf, logout: 'yes' })
}

test('signing out here and at the provider ends the other sessions through the notification of the provider', async () => {
  const { pinfold, company } = scene
  scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  // One program uses the same browser, so it has the same session at the provider. Another program runs on another machine.
  const program = await scene.open({ create_refresh_token: 'true' }, browser)
  const [token, refreshToken] = [program.get('token')!, program.get('refresh_token')!]
  const elsewhere = await scene.client()
  scene.somebody()
  const another = await scene.client()
  assert.equal(await statusOf(token), 200)

  const shown = await browser.submit(`${pinfold.url}/ui/signout`, {})
  const there = /url=(.*)$/.exec(shown.headers.get('refresh')!)![1]!
  assert.equal(await statusOf(token), 200, 'signing out here ends one session')
  const back = await agree(browser, there)
  assert.equal(back.url, `${pinfold.url}/ui/signin`)
  assert.equal(await statusOf(token), 401)
  const refreshed = await pinfold.withToken(refreshToken).post(`/sts/exchange_refresh_token?aud=${pinfold.url}`)
  assert.equal(refreshed.status, 401)
  ok(await elsewhere.get('/auth/v1/ok'))
  ok(await another.get('/auth/v1/ok'))
  assert.ok(company.url)
})

test('signing out only at the provider ends the sessions of the browser here', async () => {
  const { company } = scene
  const { uid } = scene.somebody()
  const browser = openBrowser()
  await scene.enter(browser)
  const other = openBrowser()
  await scene.enter(other)
  assert.ok(await isIn(browser))
  await agree(browser, `${company.url}/session/end`)
  assert.ok(!(await isIn(browser)))
  assert.ok(await isIn(other))

  const { pinfold, org } = scene
  const path = `/events/v2/audit?uidp.descendantsOf=${org.uid}&type=dev.pinfold.control.iam.session.ended.v1`
  const { auditEntries } = ok(await pinfold.operator.get(path))
  assert.ok(
    auditEntries.some((one: { subject: string; body: string }) => {
      return one.subject.startsWith(uid) && JSON.stringify(one.body).includes('provider')
    }),
  )
})
