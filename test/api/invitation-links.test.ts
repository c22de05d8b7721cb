// Links of invitations: their form, the page that shows them, and how often they work.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { openBrowser } from '../support/browser.ts'
import { eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { linkOf, type SignInScene, startSignInScene } from '../support/sign-in.ts'

let scene: SignInScene
let owner: Client
/** Time by which the clock of the server is ahead. */
let ahead = 0
before(async () => {
  scene = await startSignInScene({ clock: () => new Date(Date.now() + ahead) })
  const { pinfold, org } = scene
  const ada = await pinfold.seed.identity(org.uid, { name: 'ada lovelace' })
  await pinfold.seed.binding(org.uid, ada.uid, roleUids.owner)
  owner = await pinfold.as(ada.uid)
})
after(() => scene[Symbol.asyncDispose]())

const invite = async (body: Json = {}, group = scene.org.uid, client = owner) =>
  ok(await client.post(`/iam/v2/groupInvites/${group}`, { roleUid: roleUids.editor, ttl: '3600s', ...body }))
const keyOf = ({ link }: Json): string => new URL(link).hash.slice(1)
const rolesOf = async (uid: string): Promise<string[]> => {
  const { roleBindings } = ok(await scene.pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`))
  return (roleBindings as Json[]).map(({ role }) => role.name).sort()
}
const open = (code: string, browser = openBrowser()) => browser.submit(`${scene.pinfold.url}/ui/invite`, { code })

test('the answer to create has a short link, and nothing else contains it', async () => {
  const { pinfold } = scene
  let made: Json = {}
  const [event] = await eventsOf(pinfold, async () => {
    made = await invite()
  })
  const link = new URL(made.link)
  assert.deepEqual([link.origin, link.pathname], [pinfold.url, '/ui/invite'])
  assert.ok((link.pathname + link.hash).length <= 60, made.link)
  assert.ok(!JSON.stringify(event).includes(keyOf(made)))
  assert.equal(ok(await owner.get(`/iam/v2/groupInvites/${made.uid}`)).link, '')
  const row = await pinfold.app.db.get<Json>(sql`SELECT * FROM group_invites WHERE uid = ${made.uid}`)
  const secret = Buffer.from(keyOf(made), 'base64url')
  for (const value of Object.values(row!))
    assert.ok(value instanceof Uint8Array ? !Buffer.from(value).includes(secret) : !String(value).includes(keyOf(made)))
})

test('the page shows who invites to what, and leads through the sign-in to the role', async () => {
  const { pinfold, org } = scene
  const folder = await pinfold.seed.group(org.uid, { name: 'payments' })
  const { uid } = scene.somebody()
  const browser = openBrowser()
  const shown = await open(keyOf(await invite({}, folder.uid)), browser)
  assert.equal(shown.status, 200)
  const text = shown.text.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ')
  assert.match(
    text,
    /ada lovelace invites you to join the organization acme\.example, in its folder payments, with the role editor\./,
  )
  assert.match(text, /It expires on \d{4}-\d\d-\d\d \d\d:\d\d UTC\./)
  const link = new URL(linkOf(shown, 'Join: sign in with The company'), pinfold.url)
  assert.equal(link.searchParams.get('return'), '/ui/g/acme.example/payments')
  const last = await browser.go(link.href)
  assert.deepEqual([last.status, new URL(last.url).pathname], [200, '/ui/g/acme.example/payments'])
  assert.deepEqual(await rolesOf(uid), ['editor'])
})

test('a link that a person has opened is not accepted by another sign-in', async () => {
  const { uid } = scene.somebody()
  const browser = openBrowser()
  const made = await invite()
  await open(keyOf(made), browser)
  await scene.enter(browser)
  assert.deepEqual(await rolesOf(uid), ['viewer'])
  await scene.enter(browser, scene.idp.uid, '/ui/', { invite: 'x'.repeat(43) })
  assert.deepEqual(await rolesOf(uid), ['viewer'])
  await scene.accept(browser, keyOf(made))
  assert.deepEqual(await rolesOf(uid), ['editor', 'viewer'])
})

test('the link of an invitation for an email address works once, and only for this address', async () => {
  const first = scene.somebody()
  const made = await invite({ email: first.email.toUpperCase() })
  assert.equal(made.singleUse, false)
  const other = scene.somebody()
  const refused = await scene.accept(openBrowser(), keyOf(made), 'The company')
  assert.equal(refused.status, 403)
  assert.match(refused.text, /another email address/)
  scene.company.become(first.sub, { email: first.email, email_verified: true, name: 'First' })
  assert.match((await open(keyOf(made))).text, /only for <bdi>[^<]+<\/bdi>[\s\S]*only one person can use it/)
  await scene.accept(openBrowser(), keyOf(made), 'The company')
  assert.deepEqual([await rolesOf(first.uid), await rolesOf(other.uid)], [['editor'], []])
  const again = await open(keyOf(made))
  assert.deepEqual([again.status, /does not exist, or it was used/.test(again.text)], [400, true])
})

test('the link of an invitation for anybody works until it expires, and --single-use limits it', async () => {
  const many = keyOf(await invite())
  for (let i = 0; i < 2; i++) {
    const { uid } = scene.somebody()
    await scene.accept(openBrowser(), many, 'The company')
    assert.deepEqual(await rolesOf(uid), ['editor'])
  }
  const once = keyOf(await invite({ singleUse: true }))
  scene.somebody()
  await scene.accept(openBrowser(), once, 'The company')
  assert.equal((await open(once)).status, 400)
  ahead = 3_600_001
  const expired = await open(many)
  assert.deepEqual([expired.status, /This invitation has expired/.test(expired.text)], [400, true])
  ahead = 0
})

test('the page refuses an invitation that was withdrawn or whose creator lost the permission', async () => {
  const { pinfold, org } = scene
  const deleted = await invite()
  ok(await owner.delete(`/iam/v2/groupInvites/${deleted.uid}`))
  assert.equal((await open(keyOf(deleted))).status, 400)
  const former = await pinfold.seed.identity(org.uid)
  const binding = await pinfold.seed.binding(org.uid, former.uid, roleUids.owner)
  const made = await invite({}, org.uid, await pinfold.as(former.uid))
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  const shown = await open(keyOf(made))
  assert.deepEqual([shown.status, /This invitation was withdrawn/.test(shown.text)], [400, true])
  assert.equal((await open('x'.repeat(43))).status, 400)
})

test('a whole link can be entered in the form, and programs can send its key as a code', async () => {
  const made = await invite()
  assert.equal((await open(made.link)).status, 200)
  assert.equal((await open(made.code)).status, 200)
  const { uid } = scene.somebody()
  const { token } = Object.fromEntries(await scene.open({ connection: 'company', invite: keyOf(made) }))
  assert.ok(token)
  assert.deepEqual(await rolesOf(uid), ['editor'])
})

test('the operator is named as the inviter, and the script of the page sends the fragment', async () => {
  const made = await invite({}, scene.org.uid, scene.pinfold.operator)
  assert.match((await open(keyOf(made))).text, /The operator of this server<\/bdi> invites you/)
  const page = await openBrowser().ask(`${scene.pinfold.url}/ui/invite`)
  assert.match(page.headers.get('content-security-policy')!, /script-src 'sha256-/)
  assert.match(page.text, /location\.hash\.slice\(1\)/)
})
