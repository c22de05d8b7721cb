// Email domains of organizations: verification by DNS, and the sign-in page by name and by address.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { linkOf, type SignInScene, startSignInScene } from '../support/sign-in.ts'

let scene: SignInScene
let owner: Client
let viewer: Client
/** TXT records by name. An error is thrown instead. */
const records = new Map<string, string[][] | Error>()
before(async () => {
  scene = await startSignInScene()
  const { pinfold, org } = scene
  pinfold.app.dns.resolveTxt = async (name) => {
    const found = records.get(name) ?? Object.assign(new Error('no record'), { code: 'ENOTFOUND' })
    if (found instanceof Error) throw found
    return found
  }
  owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  viewer = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.viewer)).uid)
})
after(() => scene[Symbol.asyncDispose]())

const base = '/control/v1/emailDomains'
const add = (domain: string, client = owner, organization = scene.org.uid) =>
  client.post(`${base}/${organization}`, { domain })
const verify = ({ uid }: Json, client = owner) => client.post(`${base}/${uid}:verify`, {})
const publish = ({ recordName, recordValue }: Json) => records.set(recordName, [['v=spf1 -all'], [recordValue]])
const shortOf = ({ type }: Json): string => type.replace(/^dev\.pinfold\.control\.iam\.email_domain\.|\.v1$/g, '')

test('a domain is verified by its TXT record', async () => {
  let domain: Json = {}
  const events = await eventsOf(scene.pinfold, async () => {
    domain = ok(await add('Widgets.Example.'))
    assert.deepEqual([domain.domain, domain.verified, domain.verifyTime], ['widgets.example', false, undefined])
    assert.equal(domain.recordName, '_pinfold-challenge.widgets.example')
    assert.match(domain.recordValue, /^pinfold-verification=[0-9a-f]{32}$/)
    const missing = await verify(domain)
    assertBlocked(missing, 'widgets.example', 'DNS_RECORD_MISSING')
    assert.match(missing.body.message, /no TXT record _pinfold-challenge\.widgets\.example with the value pinfold/)
    records.set(domain.recordName, [['pinfold-verification=other']])
    assertBlocked(await verify(domain), 'widgets.example', 'DNS_RECORD_MISSING')
    // A long record is sent in parts.
    records.set(domain.recordName, [[domain.recordValue.slice(0, 20), domain.recordValue.slice(20)]])
    const verified = ok(await verify(domain))
    assert.ok(verified.verified && verified.verifyTime === verified.updateTime)
    ok(await owner.delete(`${base}/${domain.uid}`))
  })
  assert.deepEqual(events.map(shortOf), ['created', 'verified', 'deleted'])
  assert.deepEqual(
    events.map(({ group }) => group),
    Array(3).fill(scene.org.uid),
  )
  assertNotFound(await verify(domain), 'iam.pinfold.dev/EmailDomain', domain.uid)
})

test('refuses texts that are no domains, duplicates, folders, and callers without the capability', async () => {
  const { pinfold, org } = scene
  for (const text of [
    '',
    'acme',
    '127.0.0.1',
    'a b.example',
    '-a.example',
    'ada@acme.example',
    `${'a'.repeat(300)}.example`,
  ])
    assertInvalid(await add(text), 'email_domain.domain')
  const first = ok(await add('bücher.example'))
  assert.equal(first.domain, 'xn--bcher-kva.example')
  assert.equal((await add('BÜCHER.example')).status, 409)
  const folder = await pinfold.seed.group(org.uid)
  assertInvalid(await add('folder.example', owner, folder.uid), 'organization')
  assertDenied(await add('viewer.example', viewer))
  assertDenied(await verify(first, viewer))
  assertDenied(await viewer.delete(`${base}/${first.uid}`))
  assert.equal(ok(await viewer.get(`${base}/${org.uid}`)).emailDomains[0].domain, first.domain)
  const stranger = await pinfold.as((await pinfold.seed.member((await pinfold.seed.group()).uid, roleUids.owner)).uid)
  assertDenied(await stranger.get(`${base}/${org.uid}`))
  ok(await owner.delete(`${base}/${first.uid}`))
})

test('lists domains in pages', async () => {
  const { pinfold } = scene
  const org = await pinfold.seed.group()
  for (let i = 0; i < 3; i++) ok(await add(`d${i}.example`, pinfold.operator, org.uid))
  const page = ok(await pinfold.operator.get(`${base}/${org.uid}?page_size=2`))
  const rest = ok(await pinfold.operator.get(`${base}/${org.uid}?page_size=2&page_token=${page.nextPageToken}`))
  assert.deepEqual(
    [page.emailDomains.length, page.totalCount, rest.emailDomains.length, rest.nextPageToken],
    [2, '3', 1, ''],
  )
})

test('returns UNAVAILABLE while DNS does not answer', async () => {
  const domain = ok(await add('slow.example'))
  records.set(domain.recordName, Object.assign(new Error('timeout'), { code: 'ETIMEOUT' }))
  const answer = await verify(domain)
  assert.equal(answer.status, 503)
  assert.match(answer.body.message, /DNS did not answer for _pinfold-challenge\.slow\.example \(ETIMEOUT\)/)
})

test('a verified domain goes to another organization only after its record is gone', async () => {
  const { pinfold, org } = scene
  const other = await pinfold.seed.group()
  const mine = ok(await add('shared.example'))
  const theirs = ok(await add('shared.example', pinfold.operator, other.uid))
  publish(mine)
  ok(await verify(mine))
  records.set(mine.recordName, [[mine.recordValue], [theirs.recordValue]])
  assertBlocked(await verify(theirs, pinfold.operator), 'shared.example', 'DOMAIN_VERIFIED_ELSEWHERE')
  publish(theirs)
  assert.equal(ok(await verify(theirs, pinfold.operator)).verified, true)
  const { emailDomains } = ok(await owner.get(`${base}/${org.uid}`)) as { emailDomains: Json[] }
  assert.equal(emailDomains.find(({ uid }) => uid === mine.uid)!.verified, false)
  assertBlocked(await verify(mine), 'shared.example', 'DNS_RECORD_MISSING')
})

const enter = (org: string) =>
  openBrowser().submit(`${scene.pinfold.url}/ui/signin`, { org, return: '/ui/g/acme.example' })

test('the sign-in page finds an organization by its name, verified or not, and by a verified domain', async () => {
  const { pinfold, company, oidc, idp } = scene
  const plain = await pinfold.seed.group('', { name: 'widgets' })
  const provider = await pinfold.seed.provider(plain.uid, company.url, { oidc })
  const second = await pinfold.seed.provider(plain.uid, company.url, { oidc })
  const byName = await enter('Widgets')
  for (const { name } of [provider, second]) linkOf(byName, `Sign in with ${name} of widgets`)
  linkOf(byName, 'Sign in with The company')
  assert.match((await enter('ada@people.example')).text, /No organization with this name or email domain/)
  const domain = ok(await add('people.example'))
  assert.match((await enter('ada@people.example')).text, /No organization with this name or email domain/)
  publish(domain)
  ok(await verify(domain))
  const byEmail = await enter('Ada@People.Example')
  assert.doesNotMatch(byEmail.url, /ada/i)
  const link = new URL(linkOf(byEmail, `Sign in with ${idp.name} of acme.example`), pinfold.url)
  assert.equal(link.searchParams.get('return'), '/ui/g/acme.example')
  assert.match((await enter('ada@eu.people.example')).text, /No organization with this name or email domain/)
  scene.somebody()
  assert.equal((await scene.open({ idp_id: 'people.example' })).get('error'), null)
  assert.equal((await pinfold.anonymous.get('/orgcheck?name=widgets')).text, 'false')
  assert.equal((await pinfold.anonymous.get('/orgcheck?name=people.example')).text, 'false')
})

test('an organization cannot get the sign-ins of a domain by its name', async () => {
  const { pinfold, company, oidc, idp } = scene
  const impostor = await pinfold.seed.group('', { name: 'victim.example' })
  const trap = await pinfold.seed.provider(impostor.uid, company.url, { oidc })
  const linksOf = async (text: string) => (await enter(text)).text.match(/(?<=Sign in with )[^<]* of [^<]*/g) ?? []
  assert.deepEqual(await linksOf('ada@victim.example'), [])
  assert.deepEqual(await linksOf('victim.example'), [`${trap.name} of victim.example`])
  const domain = ok(await add('victim.example'))
  publish(domain)
  ok(await verify(domain))
  for (const text of ['ada@victim.example', '@victim.example', 'victim.example'])
    assert.deepEqual(await linksOf(text), [`${idp.name} of acme.example`], text)
  const taken = ok(await add('acme.example', pinfold.operator, impostor.uid))
  publish(taken)
  ok(await verify(taken, pinfold.operator))
  assert.deepEqual(
    await linksOf('acme.example'),
    [`${idp.name} of acme.example`],
    'the operator has verified this name',
  )
  assert.deepEqual(await linksOf('ada@acme.example'), [`${trap.name} of victim.example`])
})

test('the form of the sign-in page is refused from another site', async () => {
  const shown = await openBrowser().submit(
    `${scene.pinfold.url}/ui/signin`,
    { org: 'acme.example' },
    { 'sec-fetch-site': 'cross-site' },
  )
  assert.equal(shown.status, 403)
})
