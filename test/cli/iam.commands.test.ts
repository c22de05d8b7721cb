// Every command about access, in order against one server: each row uses the results of the previous ones.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startClouds } from '../support/fake-clouds.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { makeHome } from '../support/fake-sts.ts'
import { makePlace, type Place, type Process, run, startProcess } from '../support/process.ts'

let place: Place
let server: Process
let home: ReturnType<typeof makeHome>
let issuer: FakeIssuer
let clouds: Awaited<ReturnType<typeof startClouds>>

before(async () => {
  place = await makePlace()
  issuer = await startIssuer()
  clouds = await startClouds()
  server = await startProcess(place, {
    env: {
      PINFOLD_ALLOW_INSECURE_ISSUERS: 'on',
      PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on',
      PINFOLD_AWS_STS_URL: clouds.url,
      PINFOLD_GOOGLE_STS_URL: clouds.url,
      PINFOLD_GOOGLE_IAM_URL: clouds.url,
      PINFOLD_AZURE_LOGIN_URL: clouds.url,
    },
  })
  home = makeHome()
  for (const org of ['acme', 'other']) await played(['iam', 'organizations', 'create', org])
})
after(async () => {
  home[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
  await clouds[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
  await place[Symbol.asyncDispose]()
})

/** A command line, its expected output and its exit code; `$name` is a value that `keep` has stored. */
type Row = { words: string; prints?: RegExp; says?: RegExp; code?: number; keep?: string; rest?: string[] }

const kept = new Map<string, string>()

async function played(args: readonly string[]) {
  return run([...args, ...place.args], { env: { ...place.env, ...home.env, PINFOLD_API: server.url } })
}

async function play(rows: readonly Row[]): Promise<void> {
  for (const { words, prints, says, code = 0, keep, rest = [] } of rows) {
    const args = words.split(' ').map((word) => kept.get(word) ?? word)
    const done = await played(['iam', ...args, ...rest])
    assert.equal(done.code, code, `${words}: ${done.stderr}${done.stdout}`)
    if (prints) assert.match(done.stdout, prints, words)
    if (says) assert.match(done.stderr, says, words)
    if (keep) kept.set(`$${keep}`, done.stdout.trim())
  }
}

test('providers are made, shown, changed and deleted, with the groups that they report', async () => {
  const create = `identity-providers create corp --parent acme --oidc-issuer ${issuer.url} --oidc-client-id pinfold`
  await play([
    { words: `${create} --default-role nosuch --oidc-pkce-enabled`, code: 1, says: /no role nosuch/ },
    { words: create, code: 64, says: /--default-role/ },
    {
      words: `${create} --default-role viewer --oidc-client-secret s3cret-s3cret --oidc-additional-scopes email,profile --oidc-groups-claim groups --oidc-correlation-rule oid`,
      prints: /^default role +viewer$/m,
    },
    { words: 'identity-providers list acme', prints: /^corp +acme +http\S+ +viewer$/m },
    { words: 'identity-providers list -o id', prints: /^[0-9a-f/]{57}\n$/, keep: 'provider' },
    { words: 'identity-providers describe acme/corp -o wide', prints: /^client id +pinfold$/m },
    { words: 'identity-providers update corp --name people --default-role editor', prints: /^default role +editor$/m },
    { words: 'identity-providers update people', code: 64, says: /say what changes, by one of --name/ },

    { words: 'identity-providers group-mappings create --idp people --external-group-id devs --role editor', code: 64 },
    {
      words:
        'identity-providers group-mappings create --idp people --external-group-id devs --role editor --scope acme',
      prints: /^external group +devs\nrole +editor\nscope +acme$/m,
    },
    {
      words: 'external-group-role-mappings create --idp acme/people --external-group-id ops --role viewer --scope acme',
      prints: /^role +viewer$/m,
    },
    { words: 'identity-providers group-mappings list people', prints: /^devs +editor +acme\nops +viewer +acme$/m },
    { words: 'external-group-role-mappings list -o terse', prints: /^devs\nops$/m },
    { words: 'external-group-role-mappings list -o tree', prints: /^acme\n├─ devs\n└─ ops$/m },
    { words: 'external-group-role-mappings describe people/ops', prints: /^external group +ops$/m },
    {
      words: 'external-group-role-mappings delete sales --yes',
      code: 1,
      says: /no group mapping sales .*\n.*pinfold iam external-group-role-mappings list shows/,
    },
    {
      words: 'external-group-role-mappings create --idp people --external-group-id ops --role editor --scope acme',
    },
    {
      words: 'external-group-role-mappings delete ops --yes',
      code: 1,
      says: /several group mappings are called ops; name one as PROVIDER\/ops, or by its uid/,
    },
  ])
  const everything = JSON.parse((await played(['iam', 'external-group-role-mappings', 'list', '-o', 'json'])).stdout)
  const editors = everything.items.filter(
    ({ externalGroupId }: { externalGroupId: string }) => externalGroupId === 'ops',
  )
  await play([{ words: `external-group-role-mappings delete ${editors[1].id} --yes` }])
  const listed = JSON.parse((await played(['iam', 'external-group-role-mappings', 'list', '-o', 'json'])).stdout)
  await play([
    { words: `external-group-role-mappings delete ${listed.items[0].id} --yes`, says: /deleted the group mapping/ },
    { words: `external-group-role-mappings delete ${listed.items[0].id} --yes`, code: 1 },
    {
      words: `external-group-role-mappings delete ${listed.items[0].id} --yes --allow-missing`,
      says: /nothing to delete/,
    },
    { words: 'external-group-role-mappings delete --yes', code: 64, says: /--all and --idp/ },
    { words: 'external-group-role-mappings delete --all --yes', code: 64, says: /needs --idp/ },
    {
      words: 'external-group-role-mappings delete --all --idp people',
      code: 64,
      says: /would delete 1 group mappings/,
    },
    {
      words: 'external-group-role-mappings delete --all --idp people --yes',
      says: /deleted 1 group mappings of people/,
    },
  ])
  await play([
    { words: 'identity-providers group-mappings list people -o id', prints: /^$/ },
    { words: 'identity-providers delete people', code: 64, says: /would delete the identity provider people.*--yes/ },
  ])
})

test('people are provisioned with a token that is printed alone, and ends', async () => {
  const scim = 'identity-providers scim'
  await play([
    { words: `${scim} token regenerate people`, code: 1 },
    {
      words: `${scim} token generate people --expires-in 30`,
      prints: /^\S{20,}\n$/,
      says: /^url +http\S+\/scim\S+\nexpires +20/m,
      keep: 'token',
    },
    { words: `${scim} token generate people`, code: 1 },
    { words: `${scim} enable people`, code: 1, says: /needs at least 2 direct owners/ },
    { words: 'identities create one --parent acme --identity-issuer https://a.example --subject 1 --role owner' },
    { words: 'identities create two --parent acme --identity-issuer https://a.example --subject 2 --role owner' },
    { words: `${scim} enable people` },
    { words: 'identity-providers describe people', prints: /^scim +on$/m },
    { words: `${scim} disable people` },
    {
      words: `${scim} token regenerate people --never-expires --overlap 2`,
      prints: /^\S{20,}\n$/,
      says: /expires +never/,
    },
    { words: `${scim} token regenerate people --overlap many`, code: 64, says: /--overlap/ },
    { words: `${scim} token regenerate people --expires-in soon`, code: 64, says: /--expires-in/ },
    { words: `${scim} token revoke people`, code: 64, says: /would end the SCIM tokens of people/ },
    { words: `${scim} token revoke people --yes` },
    { words: 'identity-providers delete people --yes', says: /deleted the identity provider people/ },
    { words: 'identity-providers describe people', code: 1, says: /no identity provider people/ },
  ])
})

test('identities are made for clouds and for keys of their own', async () => {
  const id = '72f988bf-86f1-41af-91ab-2d7cd011db47'
  const shown = async (name: string) =>
    JSON.parse((await played(['iam', 'identities', 'describe', name, '-o', 'json'])).stdout)
  const aws = 'identities create aws'
  const [file, empty] = [join(home.home, 'identity.json'), join(home.home, 'empty.json')]
  writeFileSync(
    file,
    JSON.stringify({ description: 'written', claimMatch: { issuer: 'https://f.example', subject: 's' } }),
  )
  writeFileSync(empty, '[]')
  await play([
    { words: `${aws} role deploy --parent acme --account 123456789012 --role-name deploy --role viewer` },
    { words: `${aws} user bob --parent acme --account 123456789012 --user-name bob`, prints: /^kind +aws$/m },
    { words: `${aws} user eve --parent acme --account 12 --user-name eve`, code: 64, says: /12 digits/ },
    { words: 'identities create gcp run --parent acme --service-account-id 113774264463038321964' },
    { words: 'identities create gcp run2 --parent acme --service-account-id a@b', code: 64, says: /must be a number/ },
    {
      words: `identities create azure vm --parent acme --tenant-id ${id} --principal-id ${id} --application api://pinfold`,
      prints: /^kind +claim match$/m,
    },
    {
      words: `identities create azure vm2 --parent acme --tenant-id ${id} --principal-id ${id} --application ${id} --token-version 2`,
    },
    { words: `identities create azure vm3 --parent acme --tenant-id x --principal-id ${id} --application x`, code: 64 },
    {
      words: 'identities create cron --parent acme --identity-issuer https://keys.example --subject cron',
      rest: ['--issuer-keys', JSON.stringify(issuer.jwks()), '--expiration', day(30)],
      prints: /^kind +static keys$/m,
    },
    {
      words: `identities create file --parent acme --filename ${file} --subject mine -o json`,
      prints: /"subject": "mine"/,
    },
    { words: `identities create file2 --parent acme --filename ${file}x`, code: 64, says: /cannot be read: ENOENT/ },
    { words: `identities create file3 --parent acme --filename ${empty}`, code: 64, says: /holds no JSON object/ },
    { words: 'identities list acme --relationship aws -o terse', prints: /^bob\ndeploy\n$/ },
    { words: 'identities list acme --relationship static -o terse', prints: /^cron\n$/ },
    { words: 'identities list acme --expired -o terse', prints: /^$/ },
    {
      words: 'identities list acme --name run -o csv',
      prints: /^NAME,GROUP,KIND,LAST SEEN\nrun,acme,claim match,\S*$/m,
    },
  ])
  assert.equal(
    (await shown('deploy')).awsIdentity.arnPattern,
    'arn:aws[a-z-]*:sts::123456789012:assumed-role/deploy/.*',
  )
  assert.equal((await shown('run')).claimMatch.issuer, 'https://accounts.google.com')
  assert.equal((await shown('vm')).claimMatch.issuer, `https://sts.windows.net/${id}/`)
  assert.deepEqual((await shown('vm2')).claimMatch.claims, { oid: id, tid: id })
})

test('roles and invites have every verb', async () => {
  await play([
    { words: 'roles create nothing --parent acme', code: 64, says: /--capabilities/ },
    { words: 'roles create bad --parent acme --capabilities repo.fly', code: 1, says: /capabilities/ },
    {
      words: 'roles create maker --parent acme --capabilities repo.list --description Makes',
      prints: /^group +acme$/m,
    },
    { words: 'roles list acme -o csv', prints: /^maker,acme,1,Makes$/m },
    { words: 'roles update maker --name builder --description', rest: ['Builds'], prints: /^name +builder$/m },
    { words: 'roles update builder --capabilities tag.list,repo.list', prints: /^capabilities +2$/m },
    { words: 'roles update builder --capabilities tag.list --add-capabilities repo.list', code: 64 },
    { words: 'roles describe acme/builder -o env', prints: /^export PINFOLD_ROLE_NAME='builder'$/m },
    { words: 'roles list acme --capabilities tag.list,repo.list -o terse', prints: /^builder\n$/ },
    { words: 'roles list acme --capabilities tag.list,tag.create -o terse', prints: /^$/ },
    {
      words: 'roles list --managed --capabilities tag.list,tag.create -o terse',
      prints: /^operator\nowner\nregistry\.push\n$/,
    },
    { words: 'roles capabilities list --resources tag -o json', prints: /"name": "tag\.list"/ },
    { words: 'roles delete builder --yes', says: /deleted the role builder/ },
    { words: 'roles delete builder --yes', code: 1, says: /no role builder/ },
    { words: 'roles delete builder --yes --allow-missing', says: /nothing to delete/ },
    { words: 'folders delete nosuch/team --yes --allow-missing', says: /nothing to delete/ },
    { words: 'roles delete viewer --yes --allow-missing', code: 1 },

    { words: 'invites create --parent acme --role viewer --ttl 24h --email bob@acme.example -o id', keep: 'invite' },
    { words: 'invites list acme', prints: /^acme +viewer +bob@acme\.example +20/m },
    { words: 'invites describe $invite', prints: /^email +bob@acme\.example$/m },
    { words: 'invites describe acme/bob@acme.example -o id', prints: /^[0-9a-f/]{57}\n$/ },
    {
      words: 'invites describe bob',
      code: 1,
      says: /no invite bob that you can see\n.*pinfold iam invites list shows/,
    },
    { words: 'invites create --parent acme --role viewer -o id', keep: 'week' },
    { words: 'invites describe $week', prints: new RegExp(`^expires +${day(7)}T`, 'm') },
    { words: 'invites delete $week --yes' },
    { words: 'invites delete $invite --yes', says: /deleted the invite/ },
    { words: 'invites list acme -o id', prints: /^$/ },
    { words: 'access-requests list acme', prints: /^UID +ADDRESS/ },
  ])
})

test('an account at each cloud is set, tried and forgotten', async () => {
  const id = '7f5a6e3c-0000-4000-8000-000000000001'
  const accounts = 'account-associations'
  await play([
    { words: `${accounts} check aws other`, code: 1, says: /not|no / },
    { words: `${accounts} set aws other --account 123456789012`, prints: /^aws +123456789012$/m },
    { words: `${accounts} set gcp other --project-id wonder --project-number 42`, prints: /^gcp +wonder$/m },
    { words: `${accounts} set azure other --tenant-id ${id} --client-id canary`, code: 64, says: /--client-id/ },
    { words: `${accounts} set azure other --tenant-id ${id} --client-id canary=${id}`, prints: /^azure +7f5a/m },
    { words: `${accounts} list other -r`, prints: /^GROUP/ },
    { words: `${accounts} list -o markdown`, prints: /^\| other \| accounts \| 123456789012 \| wonder \|/m },
    {
      words: `${accounts} check aws other`,
      code: 1,
      prints: /^the account at aws does not trust this server: AWS responded with HTTP 403/,
    },
    { words: `${accounts} check gcp other`, code: 1, prints: /does not trust this server: Google Cloud responded with HTTP 4/ },
    { words: `${accounts} check azure other -o json`, code: 1, prints: /"status": "CHECK_STATUS_NOT_READY"/ },
    { words: 'organizations describe other -o id', keep: 'other' },
  ])
  clouds.trust('arn:aws:iam::123456789012:role/pinfold-canary', {
    issuer: server.url,
    subject: `canary:${kept.get('$other')}`,
    audience: 'sts.amazonaws.com',
  })
  await play([
    { words: `${accounts} check aws other`, prints: /^the account at aws trusts this server\n$/ },
    { words: `${accounts} unset aws other --yes` },
    { words: `${accounts} unset gcp other --yes` },
    { words: `${accounts} unset azure other --yes` },
    { words: `${accounts} describe other`, prints: /^name +accounts$/m },
  ])
})

test('text of other users cannot control the terminal, in any output format', async () => {
  const evil = 'red\u001b[31m\u009b2J\u202egnp'
  assert.equal((await played(['iam', 'folders', 'create', 'evil', '--parent', 'acme', '--description', evil])).code, 0)
  for (const format of ['table', 'wide', 'csv', 'markdown', 'terse', 'tree', 'id']) {
    const { stdout } = await played(['iam', 'folders', 'list', 'acme', '-o', format])
    assertHarmless(stdout, format)
  }
  for (const format of ['table', 'wide', 'env', 'terse']) {
    assertHarmless((await played(['iam', 'folders', 'describe', 'acme/evil', '-o', format])).stdout, format)
  }
  const asked = await played(['iam', 'folders', 'delete', `acme/${evil}`])
  assertHarmless(asked.stderr, 'what was typed comes back in an error')
  const { items } = JSON.parse((await played(['iam', 'folders', 'list', 'acme', '-o', 'json'])).stdout)
  assert.equal(items[0].description, evil, 'programs are given what there is')
})

function assertHarmless(text: string, what: string): void {
  assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u, what)
}

/** Date the given number of days from now. */
function day(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
}

test('explain prints whether an identity has access, through which bindings, and members who could grant it', async () => {
  await played(['iam', 'folders', 'create', 'asked', '--parent', 'acme'])
  const made = 'iam identities create robot --parent acme --identity-issuer https://robots.example --subject robot'
  await played(made.split(' '))
  const may = 'explain acme/asked acme/robot repo.list'
  await play([
    { words: may, code: 1, prints: /^no: repo.list at acme\/asked\nit has no role there or above\nenough would be: / },
    { words: 'role-bindings create --parent acme --identity acme/robot --role viewer' },
    { words: may, prints: /^yes: repo.list at acme\/asked\nROLE +ON *\nviewer +acme +gives it\n$/ },
    { words: `${may} -o json`, prints: /"allowed": true/ },
    { words: 'explain acme/asked acme/robot x.y', code: 1, says: /capability/ },
    { words: 'explain acme/nowhere acme/robot repo.list', code: 1, says: /nowhere/ },
  ])
})
