// Each command for access management, in order on one server. Each row uses results of earlier rows.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startClouds } from '../support/fake-clouds.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { makeHome } from '../support/fake-sts.ts'
import { createStorage, type InProcess, run, startInProcess, type TestStorage } from '../support/process.ts'

let storage: TestStorage
let server: InProcess
let home: ReturnType<typeof makeHome>
let issuer: FakeIssuer
let clouds: Awaited<ReturnType<typeof startClouds>>

before(async () => {
  storage = await createStorage()
  issuer = await startIssuer()
  clouds = await startClouds()
  server = await startInProcess(storage, {
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
  for (const org of ['acme', 'other']) await played(['orgs', 'create', org])
})
after(async () => {
  home[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
  await clouds[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
  await storage[Symbol.asyncDispose]()
})

/** A command line, its expected output and its exit code; `$name` is a value that `keep` has stored. */
type Row = { words: string; prints?: RegExp; says?: RegExp; code?: number; keep?: string; rest?: string[] }

const kept = new Map<string, string>()

async function played(args: readonly string[]) {
  return run([...args, ...storage.args], { env: { ...storage.env, ...home.env, PINFOLD_API: server.url } })
}

async function play(rows: readonly Row[]): Promise<void> {
  for (const { words, prints, says, code = 0, keep, rest = [] } of rows) {
    const args = words.split(' ').map((word) => kept.get(word) ?? word)
    const done = await played([...args, ...rest])
    assert.equal(done.code, code, `${words}: ${done.stderr}${done.stdout}`)
    if (prints) assert.match(done.stdout, prints, words)
    if (says) assert.match(done.stderr, says, words)
    if (keep) kept.set(`$${keep}`, done.stdout.trim())
  }
}

test('providers can be created, shown, changed and deleted, and their external groups listed', async () => {
  const create = `identity-providers create corp --in acme --oidc-issuer ${issuer.url} --oidc-client-id pinfold`
  await play([
    { words: `${create} --default-role nosuch --oidc-pkce-enabled`, code: 1, says: /no role nosuch/ },
    { words: create, code: 64, says: /--default-role/ },
    {
      words: `${create} --default-role viewer --oidc-client-secret s3cret-s3cret --oidc-additional-scopes email,profile --oidc-groups-claim groups --oidc-correlation-rule oid`,
      prints: /^default role +viewer$/m,
    },
    { words: 'identity-providers list --in acme', prints: /^corp +acme +http\S+ +viewer$/m },
    { words: 'identity-providers list -o id', prints: /^[0-9a-f/]{57}\n$/, keep: 'provider' },
    { words: 'identity-providers describe acme/corp -o wide', prints: /^client id +pinfold$/m },
    { words: 'identity-providers update corp --name people --default-role editor', prints: /^default role +editor$/m },
    { words: 'identity-providers update people', code: 64, says: /nothing was changed: give at least one of --name/ },

    { words: 'identity-providers group-mappings create --idp people --external-group-id devs --role editor', code: 64 },
    {
      words: 'identity-providers group-mappings create --idp people --external-group-id devs --role editor --in acme',
      prints: /^external group +devs\nrole +editor\nscope +acme$/m,
    },
    {
      words:
        'identity-providers group-mappings create --idp acme/people --external-group-id ops --role viewer --in acme',
      prints: /^role +viewer$/m,
    },
    { words: 'identity-providers group-mappings list people', prints: /^devs +editor +acme\nops +viewer +acme$/m },
    { words: 'identity-providers group-mappings list -o terse', prints: /^devs\nops$/m },
    { words: 'identity-providers group-mappings list -o tree', prints: /^acme\n├─ devs\n└─ ops$/m },
    { words: 'identity-providers group-mappings describe people/ops', prints: /^external group +ops$/m },
    {
      words: 'identity-providers group-mappings delete sales --yes',
      code: 1,
      says: /no group mapping sales .*\n.*to list the group mappings: pinfold identity-providers group-mappings list/,
    },
    {
      words: 'identity-providers group-mappings create --idp people --external-group-id ops --role editor --in acme',
    },
    {
      words: 'identity-providers group-mappings delete ops --yes',
      code: 1,
      says: /several group mappings have the name ops; give PROVIDER\/ops or one of these uids/,
    },
  ])
  const everything = JSON.parse((await played(['identity-providers', 'group-mappings', 'list', '-o', 'json'])).stdout)
  const editors = everything.items.filter(
    ({ externalGroupId }: { externalGroupId: string }) => externalGroupId === 'ops',
  )
  await play([{ words: `identity-providers group-mappings delete ${editors[1].id} --yes` }])
  const listed = JSON.parse((await played(['identity-providers', 'group-mappings', 'list', '-o', 'json'])).stdout)
  await play([
    {
      words: `identity-providers group-mappings delete ${listed.items[0].id} --yes`,
      says: /Deleted the group mapping/,
    },
    { words: `identity-providers group-mappings delete ${listed.items[0].id} --yes`, code: 1 },
    {
      words: `identity-providers group-mappings delete ${listed.items[0].id} --yes --allow-missing`,
      says: /Nothing was deleted: it does not exist/,
    },
    { words: 'identity-providers group-mappings delete --yes', code: 64, says: /--all and --idp/ },
    { words: 'identity-providers group-mappings delete --all --yes', code: 64, says: /--all needs --idp/ },
    {
      words: 'identity-providers group-mappings delete --all --idp people',
      code: 64,
      says: /would delete 1 group mappings/,
    },
    {
      words: 'identity-providers group-mappings delete --all --idp people --yes',
      says: /Deleted 1 group mappings of people/,
    },
  ])
  await play([
    { words: 'identity-providers group-mappings list people -o id', prints: /^$/ },
    { words: 'identity-providers delete people', code: 64, says: /would delete the identity provider people.*--yes/ },
  ])
})

test('provisions users with a SCIM token, which is printed alone and can be revoked', async () => {
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
    { words: 'identities create one --in acme --identity-issuer https://a.example --subject 1 --role owner' },
    { words: 'identities create two --in acme --identity-issuer https://a.example --subject 2 --role owner' },
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
    { words: `${scim} token revoke people`, code: 64, says: /would revoke the SCIM tokens of people/ },
    { words: `${scim} token revoke people --yes` },
    { words: 'identity-providers delete people --yes', says: /Deleted the identity provider people/ },
    { words: 'identity-providers describe people', code: 1, says: /no identity provider people/ },
  ])
})

test('creates identities for clouds and with static keys', async () => {
  const id = '72f988bf-86f1-41af-91ab-2d7cd011db47'
  const shown = async (name: string) =>
    JSON.parse((await played(['identities', 'describe', name, '-o', 'json'])).stdout)
  const aws = 'identities create aws'
  const [file, empty] = [join(home.home, 'identity.json'), join(home.home, 'empty.json')]
  writeFileSync(
    file,
    JSON.stringify({ description: 'written', claimMatch: { issuer: 'https://f.example', subject: 's' } }),
  )
  writeFileSync(empty, '[]')
  await play([
    { words: `${aws} role deploy --in acme --account 123456789012 --role-name deploy --role viewer` },
    { words: `${aws} user bob --in acme --account 123456789012 --user-name bob`, prints: /^kind +aws$/m },
    { words: `${aws} user eve --in acme --account 12 --user-name eve`, code: 64, says: /12 digits/ },
    { words: 'identities create gcp run --in acme --service-account-id 113774264463038321964' },
    { words: 'identities create gcp run2 --in acme --service-account-id a@b', code: 64, says: /must be a number/ },
    {
      words: `identities create azure vm --in acme --tenant-id ${id} --principal-id ${id} --application api://pinfold`,
      prints: /^kind +claim match$/m,
    },
    {
      words: `identities create azure vm2 --in acme --tenant-id ${id} --principal-id ${id} --application ${id} --token-version 2`,
    },
    { words: `identities create azure vm3 --in acme --tenant-id x --principal-id ${id} --application x`, code: 64 },
    {
      words: 'identities create cron --in acme --identity-issuer https://keys.example --subject cron',
      rest: ['--issuer-keys', JSON.stringify(issuer.jwks()), '--expiration', day(30)],
      prints: /^kind +static keys$/m,
    },
    {
      words: `identities create file --in acme --filename ${file} --subject mine -o json`,
      prints: /"subject": "mine"/,
    },
    { words: `identities create file2 --in acme --filename ${file}x`, code: 64, says: /cannot be read: ENOENT/ },
    { words: `identities create file3 --in acme --filename ${empty}`, code: 64, says: /is not a JSON object/ },
    { words: 'identities list --in acme --relationship aws -o terse', prints: /^bob\ndeploy\n$/ },
    { words: 'identities list --in acme --relationship static -o terse', prints: /^cron\n$/ },
    { words: 'identities list --in acme --expired -o terse', prints: /^$/ },
    {
      words: 'identities list --in acme --name run -o csv',
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

test('roles and invitations support all commands', async () => {
  await play([
    { words: 'roles create nothing --in acme', code: 64, says: /--capabilities/ },
    { words: 'roles create bad --in acme --capabilities repo.fly', code: 1, says: /capabilities/ },
    {
      words: 'roles create maker --in acme --capabilities repo.list --description Makes',
      prints: /^group +acme$/m,
    },
    { words: 'roles list --in acme -o csv', prints: /^maker,acme,1,Makes$/m },
    { words: 'roles update maker --name builder --description', rest: ['Builds'], prints: /^name +builder$/m },
    { words: 'roles update builder --capabilities tag.list,repo.list', prints: /^capabilities +2$/m },
    { words: 'roles update builder --capabilities tag.list --add-capabilities repo.list', code: 64 },
    { words: 'roles describe acme/builder -o env', prints: /^export PINFOLD_ROLE_NAME='builder'$/m },
    { words: 'roles list --in acme --capabilities tag.list,repo.list -o terse', prints: /^builder\n$/ },
    { words: 'roles list --in acme --capabilities tag.list,tag.create -o terse', prints: /^$/ },
    {
      words: 'roles list --managed --capabilities tag.list,tag.create -o terse',
      prints: /^operator\nowner\nregistry\.push\n$/,
    },
    { words: 'roles capabilities list --resources tag -o json', prints: /"name": "tag\.list"/ },
    { words: 'roles delete builder --yes', says: /Deleted the role builder/ },
    { words: 'roles delete builder --yes', code: 1, says: /no role builder/ },
    { words: 'roles delete builder --yes --allow-missing', says: /Nothing was deleted: it does not exist/ },
    { words: 'folders delete nosuch/team --yes --allow-missing', says: /Nothing was deleted: it does not exist/ },
    { words: 'roles delete viewer --yes --allow-missing', code: 1 },

    { words: 'invitations create --in acme --role viewer --ttl 24h --email bob@acme.example -o id', keep: 'invite' },
    { words: 'invitations list --in acme', prints: /^acme +viewer +bob@acme\.example +20/m },
    { words: 'invitations describe $invite', prints: /^email +bob@acme\.example$/m },
    { words: 'invitations describe acme/bob@acme.example -o id', prints: /^[0-9a-f/]{57}\n$/ },
    {
      words: 'invitations describe bob',
      code: 1,
      says: /no invitation bob that you can see\n.*to list the invitations: pinfold invitations list/,
    },
    { words: 'invitations create --in acme --role viewer -o id', keep: 'week' },
    { words: 'invitations describe $week', prints: new RegExp(`^expires +${day(7)}T`, 'm') },
    { words: 'invitations delete $week --yes' },
    { words: 'invitations delete $invite --yes', says: /Deleted the invitation/ },
    { words: 'invitations list --in acme -o id', prints: /^$/ },
    { words: 'access-requests list acme', prints: /^UID +EMAIL/ },
  ])
})

test('links, checks and unlinks an account at each cloud', async () => {
  const id = '7f5a6e3c-0000-4000-8000-000000000001'
  const accounts = 'cloud-accounts'
  await play([
    { words: `${accounts} check aws other`, code: 1, says: /not|no / },
    { words: `${accounts} link aws other --account 123456789012`, prints: /^aws +123456789012$/m },
    { words: `${accounts} link gcp other --project-id wonder --project-number 42`, prints: /^gcp +wonder$/m },
    { words: `${accounts} link azure other --tenant-id ${id} --client-id canary`, code: 64, says: /--client-id/ },
    { words: `${accounts} link azure other --tenant-id ${id} --client-id canary=${id}`, prints: /^azure +7f5a/m },
    { words: `${accounts} list --in other -r`, prints: /^GROUP/ },
    { words: `${accounts} list -o markdown`, prints: /^\| other \| accounts \| 123456789012 \| wonder \|/m },
    {
      words: `${accounts} check aws other`,
      code: 1,
      prints: /^the AWS account does not trust this server: AWS responded with HTTP 403/,
    },
    {
      words: `${accounts} check gcp other`,
      code: 1,
      prints: /does not trust this server: Google Cloud responded with HTTP 4/,
    },
    { words: `${accounts} check azure other -o json`, code: 1, prints: /"status": "CHECK_STATUS_NOT_READY"/ },
    { words: 'orgs describe other -o id', keep: 'other' },
  ])
  clouds.trust('arn:aws:iam::123456789012:role/pinfold-canary', {
    issuer: server.url,
    subject: `canary:${kept.get('$other')}`,
    audience: 'sts.amazonaws.com',
  })
  await play([
    { words: `${accounts} check aws other`, prints: /^the AWS account trusts this server\n$/ },
    { words: `${accounts} unlink aws other --yes` },
    { words: `${accounts} unlink gcp other --yes` },
    { words: `${accounts} unlink azure other --yes` },
    { words: `${accounts} describe other`, prints: /^name +accounts$/m },
  ])
})

test('text of other users cannot control the terminal, in any output format', async () => {
  const evil = 'red\u001b[31m\u009b2J\u202egnp'
  assert.equal((await played(['folders', 'create', 'evil', '--in', 'acme', '--description', evil])).code, 0)
  for (const format of ['table', 'wide', 'csv', 'markdown', 'terse', 'tree', 'id']) {
    const { stdout } = await played(['folders', 'list', '--in', 'acme', '-o', format])
    assertHarmless(stdout, format)
  }
  for (const format of ['table', 'wide', 'env', 'terse']) {
    assertHarmless((await played(['folders', 'describe', 'acme/evil', '-o', format])).stdout, format)
  }
  const asked = await played(['folders', 'delete', `acme/${evil}`])
  assertHarmless(asked.stderr, 'what was typed comes back in an error')
  const { items } = JSON.parse((await played(['folders', 'list', '--in', 'acme', '-o', 'json'])).stdout)
  assert.equal(items[0].description, evil, 'programs are given what there is')
})

function assertHarmless(text: string, what: string): void {
  assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u, what)
}

/** Date the given number of days from now. */
function day(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
}

test('explain prints whether an identity has access, the bindings that give it, and members who can grant it', async () => {
  await played(['folders', 'create', 'asked', '--in', 'acme'])
  const made = 'identities create robot --in acme --identity-issuer https://robots.example --subject robot'
  await played(made.split(' '))
  const may = 'identities explain acme/robot repo.list --in acme/asked'
  await play([
    {
      words: may,
      code: 1,
      prints: /^no: repo.list in acme\/asked\nthe identity has no role in this scope or above it\nsufficient roles: /,
    },
    { words: 'members add acme/robot --in acme --role viewer' },
    {
      words: may,
      prints: /^yes: repo.list in acme\/asked\nROLE +SCOPE +EFFECT\nviewer +acme +grants the capability\n$/,
    },
    { words: `${may} -o json`, prints: /"allowed": true/ },
    { words: 'identities explain acme/robot x.y --in acme/asked', code: 1, says: /capability/ },
    { words: 'identities explain acme/robot repo.list --in acme/nowhere', code: 1, says: /nowhere/ },
  ])
})
