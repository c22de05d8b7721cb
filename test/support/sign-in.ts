// Starts a server with an identity provider, both as the provider of an organization and in the settings.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { personUid } from '#domains/iam/identities/people.ts'
import { type Browser, openBrowser, type Shown } from './browser.ts'
import { clientId, clientSecret, startPeopleProvider } from './people-provider.ts'
import { type Json, startPinfold } from './pinfold.ts'

export const loopback = 'http://localhost:4711/callback'
export type SignInScene = Awaited<ReturnType<typeof startSignInScene>>

export async function startSignInScene(overrides: Parameters<typeof startPinfold>[0] = {}) {
  const company = await startPeopleProvider()
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-secret-'))
  const secretFile = join(folder, 'secret')
  writeFileSync(secretFile, `${clientSecret}\n`)
  const pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    oidcProviders: [{ issuer: company.url, audience: clientId, label: 'The company', name: 'company', secretFile }],
    ...overrides,
  })
  const org = await pinfold.seed.group('', { name: 'acme.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })
  const oidc = {
    issuer: company.url,
    clientId,
    clientSecret,
    additionalScopes: ['email', 'profile', 'groups'],
    groupsClaim: 'groups',
  }
  const idp = await pinfold.seed.provider(org.uid, company.url, { oidc })
  const { url } = pinfold
  company.register([`${url}/oauth/callback`, `${url}/oauth/callback/${idp.uid}`, `${url}/oauth/callback/company`], {
    post_logout_redirect_uris: [`${url}/ui/signin`],
    backchannel_logout_uri: `${url}/oauth/backchannel/${idp.uid}`,
  })
  let people = 0

  /** Parameters of the redirect to a program on loopback. */
  async function open(parameters: Json = {}, browser: Browser = openBrowser()): Promise<URLSearchParams> {
    const named = 'connection' in parameters ? {} : { idp_id: idp.uid }
    const query = new URLSearchParams({
      exit: 'redirect',
      redirect: `${loopback}?token=true&error=true`,
      ...named,
      ...parameters,
    })
    const isOver = (next: string) => next.startsWith(loopback)
    let shown = await browser.go(`${url}/oauth?${query}`, {}, isOver)
    if ('invite' in parameters && !isOver(shown.url))
      shown = await browser.go(new URL(linkOf(shown, 'Join'), url).href, {}, isOver)
    assert.ok(shown.url.startsWith(`${loopback}?`), shown.text)
    return new URL(shown.url).searchParams
  }

  return {
    company,
    pinfold,
    org,
    idp,
    oidc,
    open,
    /** Sets the user whom the company's provider signs in from now on. */
    somebody(claims: Json = {}): { sub: string; uid: string; email: string } {
      const sub = `person-${people++}`
      const email = `${sub}@acme.example`
      company.become(sub, { email, email_verified: true, name: `Person ${sub}`, ...claims })
      return { sub, uid: personUid(company.url, sub), email }
    },
    /** Client with the token of a user who signs in for a program. */
    async client(parameters: Json = {}, browser?: Browser) {
      const answer = await open(parameters, browser)
      assert.equal(answer.get('error'), null)
      return pinfold.withToken(answer.get('token')!)
    },
    /** Signs in through the pages, and returns the last page. */
    enter: (browser: Browser, idpId: string = idp.uid, to = '/ui/', more: Json = {}): Promise<Shown> =>
      browser.go(`${url}/ui/signin/start?${new URLSearchParams({ idp: idpId, return: to, ...more })}`),
    /** Opens an invitation by its code or link key, accepts it with a provider, and returns the last page. */
    async accept(browser: Browser, code: string, label: string = idp.name): Promise<Shown> {
      const shown = await browser.submit(`${url}/ui/invite`, { code })
      return browser.go(new URL(linkOf(shown, `Join: sign in with ${label}`), url).href)
    },
    async [Symbol.asyncDispose]() {
      await pinfold[Symbol.asyncDispose]()
      await company[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** URL of the link with this text. */
export function linkOf({ text }: Shown, words: string): string {
  const found = new RegExp(`<a [^>]*href="([^"]*)"[^>]*>${words}</a>`).exec(text)
  assert.ok(found, text)
  return found[1]!.replaceAll('&amp;', '&')
}
