// Sign-in pages in a real Chromium, with a real server and a real identity provider: sign-in, invitations, devices, the
// operator's link, and axe on every page. PINFOLD_TEST_CHROMIUM names the browser.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { audit, createChecks, expect, launchChromium, openPage, settled, titled } from '../support/chromium.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { type SignInScene, startSignInScene } from '../support/sign-in.ts'

const checks = createChecks()
const { check } = checks
const watched = { complaints: [] as string[], foreign: [] as string[] }

/** Signs in with the form, by the name of the organization. */
async function signIn(page: Page): Promise<void> {
  await page.getByLabel(/name of your organization/).fill('acme.example')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('link', { name: /of acme\.example$/ }).click()
}

type Room = { scene: SignInScene; url: string; fresh: () => Promise<{ context: BrowserContext; page: Page }> }

async function trySigningIn({ scene, url, fresh }: Room): Promise<void> {
  await check('public pages have no accessibility violation', async () => {
    const { context, page } = await fresh()
    for (const path of ['/ui/signin', '/ui/signin?org=nobody', '/ui/invite', '/ui/device', '/ui/enter']) {
      await page.goto(url + path)
      await audit(page)
    }
    await page.goto(`${url}/oauth?exit=redirect&redirect=nowhere`)
    await audit(page)
    await context.close()
  })
  await check('a first sign-in with the provider of an organization ends at the requested page', async () => {
    const { email } = scene.somebody()
    const { context, page } = await fresh()
    await page.goto(`${url}/ui/`)
    await signIn(page)
    await titled(page, 'Overview')
    await page.goto(`${url}/ui/sessions`)
    await titled(page, 'Your account')
    expect((await page.content()).includes(email), await page.content())
    await audit(page)
    const [cookie] = (await context.cookies(url)).filter(({ name }) => name === 'pinfold')
    expect(cookie?.httpOnly === true && cookie.sameSite === 'Lax', cookie)
    // The page redirects to the provider by itself. Without an answer of the provider, the page stays, so it can be checked.
    await page.route(`${scene.company.url}/**`, (asked) => asked.fulfill({ status: 204 }))
    const ahead = page.waitForRequest((asked) => asked.url().startsWith(scene.company.url))
    await page.getByRole('button', { name: 'Sign out' }).click()
    await titled(page, 'Signed out')
    await audit(page)
    await ahead
    await context.close()
  })
  await check('twenty of twenty deep links lead back to their page after the sign-in', async () => {
    scene.somebody()
    for (let i = 0; i < 20; i++) {
      const { context, page } = await fresh()
      const link = `${url}/ui/g/acme.example/team-${i}/~/members/invitations?page=${i}&q=%2Fa%20b`
      await page.goto(link)
      await signIn(page)
      await page.waitForURL(link)
      if (i === 0) {
        await settled(page)
        await audit(page)
      }
      await context.close()
    }
  })
  await check('a person without an invitation is refused, and joins with one', async () => {
    const { uid } = scene.somebody()
    const { code } = (await scene.pinfold.seed.invite(scene.org.uid, roleUids.editor)) as { code: string }
    const { context, page } = await fresh()
    await page.goto(`${url}/ui/signin`)
    await page.getByRole('link', { name: 'Sign in with The company' }).click()
    await titled(page, 'Sign-in failed')
    await audit(page)
    await page.getByRole('link', { name: 'Use an invitation' }).click()
    await page.getByLabel('Code').fill(code)
    await page.getByRole('button', { name: 'Continue' }).click()
    await audit(page)
    await page.getByRole('link', { name: 'Join: sign in with The company' }).click()
    await titled(page, 'Overview')
    const { body } = await scene.pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`)
    expect(
      (body.roleBindings as Json[]).some(({ role }) => role.name === 'editor'),
      body,
    )
    await context.close()
  })
  await check('the link of an invitation leads to the role, and its key leaves the address', async () => {
    const { uid } = scene.somebody()
    const { operator } = scene.pinfold
    const invite = { roleUid: roleUids.editor, ttl: '3600s' }
    const { link } = (await operator.post(`/iam/v2/groupInvites/${scene.org.uid}`, invite)).body as { link: string }
    const { context, page } = await fresh()
    await page.goto(link)
    await titled(page, 'Join acme.example')
    expect(page.url() === `${url}/ui/invite`, page.url())
    await page.getByRole('link', { name: 'Join: sign in with The company' }).click()
    await titled(page, 'Overview')
    const { body } = await operator.get(`/iam/v2/roleBindings?identity=${uid}`)
    expect(
      (body.roleBindings as Json[]).some(({ role }) => role.name === 'editor'),
      body,
    )
    await context.close()
  })
}

async function tryPrograms({ scene, url, fresh }: Room): Promise<void> {
  await check('a person authorizes a program by its code', async () => {
    const { uid } = scene.somebody()
    const ask = async (path: string, form: Json) =>
      (await (await fetch(url + path, { method: 'POST', body: new URLSearchParams(form) })).json()) as Json
    const { device_code, user_code } = await ask('/oauth/device_authorization', { client_id: 'pinfold' })
    const { context, page } = await fresh()
    await page.goto(`${url}/ui/device`)
    await page.getByLabel('Code').fill(user_code.toLowerCase())
    await page.getByRole('button', { name: 'Continue' }).click()
    await signIn(page)
    await titled(page, 'Authorize this program?')
    await audit(page)
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.getByRole('status').waitFor()
    await titled(page, 'Program authorized')
    await audit(page)
    const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
    const { access_token } = await ask('/oauth/token', { grant_type, device_code, client_id: 'pinfold' })
    const who = await scene.pinfold.withToken(access_token).get('/auth/v1/ok')
    expect(who.body.subject === uid, who.text)
    await context.close()
  })
  await check('a program on loopback gets its code after the person accepts an invitation', async () => {
    scene.somebody()
    const { code: invite } = (await scene.pinfold.seed.invite(scene.org.uid, roleUids.viewer)) as { code: string }
    const arrived = Promise.withResolvers<string>()
    const program = createServer((req, res) => {
      res.end('<!doctype html><title>done</title>')
      if (req.url?.startsWith('/callback')) arrived.resolve(req.url)
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => program.once('listening', resolve))
    const redirect_uri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`
    const asked = { response_type: 'code', client_id: 'pinfold', redirect_uri, state: 's', scope: 'openid', invite }
    const pkce = { code_challenge: 'a'.repeat(43), code_challenge_method: 'S256', connection: 'company' }
    const { context, page } = await fresh()
    await page.goto(`${url}/oauth?${new URLSearchParams({ ...asked, ...pkce })}`)
    await audit(page)
    await page.getByRole('link', { name: 'Join', exact: true }).click()
    const answer = new URL(await arrived.promise, url).searchParams
    expect(answer.get('state') === 's' && answer.has('code') && answer.get('iss') === url, answer.toString())
    await context.close()
    program.closeAllConnections()
    program.close()
  })
  await check('a person authorizes a program on a machine without a browser', async () => {
    scene.somebody()
    const { context, page } = await fresh()
    await page.goto(`${url}/oauth?headless_code=3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08`)
    await signIn(page)
    await titled(page, 'Authorize this program?')
    await audit(page)
    await page.getByRole('button', { name: 'Authorize' }).click()
    await page.getByRole('status').waitFor()
    await context.close()
  })
}

async function tryOperator({ scene, url, fresh }: Room): Promise<void> {
  await check("the operator's link works once, and its code is removed from the address", async () => {
    const { code } = (await scene.pinfold.operator.post('/control/v1/consoleCodes')).body
    const { context, page } = await fresh()
    await page.goto(`${url}/ui/enter#${code}`)
    await page.waitForURL(`${url}/ui/**`)
    await page.getByRole('button', { name: /Operator/ }).waitFor()
    await settled(page)
    await audit(page)
    await page.goBack()
    expect(!page.url().includes(code), page.url())
    await context.close()
    const other = await fresh()
    await other.page.goto(`${url}/ui/enter#${code}`)
    await other.page.getByRole('alert').waitFor()
    await audit(other.page)
    await other.context.close()
  })
}

await using scene = await startSignInScene()
const browser = await launchChromium()
const room: Room = { scene, url: scene.pinfold.url, fresh: () => openPage(browser, scene.pinfold.url, watched) }
await trySigningIn(room)
await tryPrograms(room)
await tryOperator(room)
await browser.close()
await check('no page has reported an error', async () => expect(watched.complaints.length === 0, watched.complaints))
checks.finish()
