// Guides on people: single sign-on, SCIM, invitations, the command line and access requests.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { ok } from '../support/expect.ts'
import { openShell, readGuide, type Shell, type Stub } from '../support/guides.ts'
import { clientSecret, startPeopleProvider } from '../support/people-provider.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { groupSchema, scimClient, userSchema } from '../support/scim.ts'
import { startSignInScene } from '../support/sign-in.ts'

/** Opens the URL that a command wants to show. */
const browser: Stub = async ([url]) => ({ stdout: String((await openBrowser().go(url!)).status) })

const operatorOf = ({ url, operator }: { url: string; operator: { token: string | undefined } }) => ({
  PINFOLD_API: url,
  PINFOLD_TOKEN: operator.token!,
})

/** The shell of a person who is not signed in yet. */
async function shellOfPerson(url: string): Promise<Shell> {
  const shell = await openShell({ PINFOLD_API: url }, { browser })
  shell.env.BROWSER = join(shell.home.home, 'bin/browser')
  return shell
}

test('the guides on single sign-on and SCIM work as written', async () => {
  const [signOn, scim] = [readGuide('add-single-sign-on'), readGuide('provision-with-scim')]
  await using company = await startPeopleProvider()
  await using pinfold = await startPinfold({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'] })
  await using shell = await openShell(operatorOf(pinfold))
  const issuer = 'https://keycloak.example.com/realms/acme'
  const [acme, other] = [await pinfold.seed.group('', { name: 'acme' }), await pinfold.seed.group()]
  for (let i = 0; i < 2; i++) await pinfold.seed.member(acme.uid, roleUids.owner)

  const secret = { SECRET: `'${clientSecret}'` }
  const made = await shell.paste(signOn.sh[0]!, { [issuer]: company.url, ...secret })
  const { stdout: provider } = await shell.paste('pinfold identity-providers describe keycloak -o id')
  const uid = provider.trim()
  assert.match(made.stdout, new RegExp(uid))
  const here = (text: string) => text.replace('https://registry.example.com', pinfold.url).replace('PROVIDER', uid)
  company.register(signOn.row('Valid redirect URIs').map(here))

  company.become('ada', { email: 'ada@acme.example', email_verified: true, name: 'Ada' })
  await using ada = await shellOfPerson(pinfold.url)
  const login = `pinfold login --identity-provider ${uid}`
  await ada.paste(login)
  assert.match((await ada.paste('pinfold whoami')).stdout, /^permission +viewer in acme$/m)

  const token = await shell.paste(scim.sh[0]!)
  const [, endpoint] = /^url +(\S+)$/m.exec(token.stderr)!
  assert.equal(endpoint, here(scim.row('Base URL, tenant URL')[0]!))
  const client = scimClient(endpoint!, token.stdout.trim())
  const user = await client.post('/Users', { schemas: [userSchema], userName: 'ada', externalId: 'ada', active: true })
  assert.equal(user.status, 201, user.text)
  const members = [{ value: user.body.id }]
  const group = await client.post('/Groups', { schemas: [groupSchema], displayName: 'builders', members })
  assert.equal(group.status, 201, group.text)
  await shell.paste(scim.sh[1]!)
  await ada.paste(login)
  assert.match((await ada.paste('pinfold whoami')).stdout, /^permission +editor in acme$/m)

  await client.patch(`/Users/${user.body.id}`, { op: 'replace', path: 'active', value: false })
  assert.match((await ada.paste('pinfold whoami 2>&1 || true')).stdout, /the session of the token has ended/)
  assert.match((await ada.paste(`${login} 2>&1 || true`)).stdout, /has deactivated your account/)

  const [body] = signOn.json()
  writeFileSync(
    join(shell.work, 'provider.json'),
    JSON.stringify(body).replace(issuer, company.url).replace('"ROLE"', `"${roleUids.viewer}"`),
  )
  const url = { 'https://registry.example.com': pinfold.url, ORGANIZATION: other.uid, $TOKEN: pinfold.operator.token! }
  const second = JSON.parse((await shell.paste(signOn.sh[1]!, url)).stdout)
  const first = ok(await pinfold.operator.get(`/iam/v2/identityProviders/${uid}`))
  assert.deepEqual({ ...second.oidc, clientSecret: '' }, { ...first.oidc, clientSecret: '' })
})

test('the guide on people works as written', async () => {
  const { text, sh } = readGuide('add-people')
  await using scene = await startSignInScene({ allowSelfRegistration: true })
  const { pinfold } = scene
  await using shell = await openShell(operatorOf(pinfold))
  const [invite, create, answer, login, ask, explain] = sh
  await shell.paste(create!)
  const invited = await shell.paste(invite!)
  assert.match(invited.stdout, /^role +viewer$[\s\S]*^email +dana@example\.com$[\s\S]*^single use +yes$/m)

  assert.match(text, /`https:\/\/registry\.example\.com\/ui\/invite#…`/)
  const [, key] = new RegExp(`^link +${pinfold.url}/ui/invite#(\\S+)$`, 'm').exec(invited.stdout)!
  scene.company.become('dana', { email: 'dana@example.com', email_verified: true, name: 'Dana' })
  const dana = openBrowser()
  assert.equal((await scene.accept(dana, key!, 'The company')).status, 200)
  assert.match((await shell.paste('pinfold members list --in acme')).stdout, /Dana/)

  const owner = async (org: string) => {
    const { stdout } = await shell.paste(`pinfold orgs describe ${org} -o id`)
    const { uid } = await pinfold.seed.member(stdout.trim(), roleUids.owner)
    return `PINFOLD_TOKEN=${await pinfold.tokenFor(uid)}`
  }
  const person = scene.somebody()
  await using home = await shellOfPerson(pinfold.url)
  await home.paste('pinfold login')
  await shell.paste('pinfold orgs create beta')
  for (const org of ['acme', 'beta'])
    await shell.paste(`${await owner(org)} pinfold members add ${person.uid} --in ${org} --role viewer`)
  const { items } = JSON.parse((await home.paste('pinfold invitations pending -o json')).stdout)
  const uidIn = (name: string) => items.find(({ organization }: Json) => organization === name).uid as string
  const answered = await home.paste(answer!, {
    'accept UID': `accept ${uidIn('acme')}`,
    'decline UID': `decline ${uidIn('beta')}`,
  })
  for (const column of ['ORGANIZATION', 'SCOPE', 'ROLE', 'GRANTED BY', 'TIME'])
    assert.ok(answered.stdout.includes(column))
  assert.equal((await home.paste('pinfold orgs list -o terse')).stdout, 'acme\n')

  scene.somebody()
  await using other = await shellOfPerson(pinfold.url)
  const { stdout: session } = await other.paste(login!, { 'https://registry.example.com': pinfold.url })
  assert.match(session, /^permission +viewer in acme\.example$/m)
  assert.match((await other.paste('pinfold whoami 2>&1 || true')).stdout, /not signed in/)

  const token = (await home.paste('pinfold tokens print')).stdout.trim()
  const asked = await home.paste(ask!, { $TOKEN: token, $URL: pinfold.url, $GROUP: scene.org.uid })
  assert.match(asked.stdout, new RegExp(scene.org.uid))
  assert.match((await shell.paste('pinfold access-requests list acme.example')).stdout, new RegExp(person.email))

  await shell.paste('pinfold folders create team --in acme; pinfold repos create acme/team/app')
  const trust = '--identity-issuer https://ci.example --subject x --role viewer'
  await shell.paste(`pinfold identities create robot --in acme ${trust}`)
  assert.match((await shell.paste(explain!)).stdout, /viewer/)
})
