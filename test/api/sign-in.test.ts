// How people sign in: with the provider of an organisation or one of the settings, in a browser and for a program.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { personUid } from '#domains/iam/identities/people.ts'
import { type Browser, openBrowser } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { ok } from '../support/expect.ts'
import { clientId, clientSecret, type PeopleProvider, startPeopleProvider } from '../support/people-provider.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let company: PeopleProvider
let pinfold: Pinfold
let org: Json
let idp: Json
let people = 0

before(async () => {
  company = await startPeopleProvider()
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    peopleIssuers: [{ issuer: company.url, audience: clientId, label: 'The company', name: 'company' }],
  })
  org = await pinfold.seed.group('', { name: 'acme.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })
  idp = await pinfold.seed.provider(org.uid, company.url, {
    oidc: {
      issuer: company.url,
      clientId,
      clientSecret,
      additionalScopes: ['email', 'profile', 'groups'],
      groupsClaim: 'groups',
    },
  })
  company.register([`${pinfold.url}/oauth/callback`, `${pinfold.url}/oauth/callback/${idp.uid}`], {
    post_logout_redirect_uris: [`${pinfold.url}/ui/signin`],
    backchannel_logout_uri: `${pinfold.url}/oauth/backchannel/${idp.uid}`,
  })
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await company[Symbol.asyncDispose]()
})

function somebody(claims: Json = {}): { sub: string; uid: string } {
  const sub = `person-${people++}`
  company.become(sub, { email: `${sub}@acme.example`, email_verified: true, name: `Person ${sub}`, ...claims })
  return { sub, uid: personUid(company.url, sub) }
}

const loopback = 'http://localhost:4711/callback?token=true&error=true'

/** What a program gets on loopback. */
async function open(parameters: Json, browser: Browser = openBrowser()): Promise<URLSearchParams> {
  const query = new URLSearchParams({ exit: 'redirect', redirect: loopback, ...parameters })
  const shown = await browser.go(`${pinfold.url}/oauth?${query}`, {}, (next) =>
    next.startsWith('http://localhost:4711'),
  )
  assert.ok(shown.url.startsWith('http://localhost:4711/callback?'), shown.text)
  return new URL(shown.url).searchParams
}

test('a new person signs in with the provider of their organisation and gets its default role', async () => {
  const { uid, sub } = somebody()
  const answer = await open({ idp_id: idp.uid })
  assert.equal(answer.get('error'), null)
  const token = answer.get('token')!
  assert.partialDeepStrictEqual(claimsOf(token), {
    sub: uid,
    email: `${sub}@acme.example`,
    email_verified: true,
    act: { iss: company.url, sub, aud: clientId },
    upstream: { email: `${sub}@acme.example`, name: `Person ${sub}`, picture: '' },
    org: org.uid,
  })
  assert.equal(answer.get('refresh_token'), null)
  const me = ok(await pinfold.withToken(token).get('/auth/v1/ok'))
  assert.deepEqual([me.subject, me.capabilities.length, me.capabilities[0].role.name], [uid, 1, 'viewer'])
  const bindings = ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`)).roleBindings
  assert.deepEqual(
    bindings.map((one: Json) => one.role.uid),
    [roleUids.viewer],
  )
})
