import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import type { Terminal } from '../../src/cli/framework/command.ts'
import { withOperator } from '../../src/cli/framework/operator.ts'
import { makeHome } from '../support/fake-sts.ts'
import { onPostgres } from '../support/pinfold.ts'
import {
  createStorage,
  type InProcess,
  type Run,
  run,
  startInProcess,
  type TestStorage,
  tokenOf,
} from '../support/process.ts'

const terminal: Terminal = {
  env: {},
  input: async () => '',
  print: () => {},
  say: () => {},
  untilSignaled: async () => {},
}
let storage: TestStorage
let server: InProcess
let home: ReturnType<typeof makeHome>

before(async () => {
  storage = await createStorage()
  server = await startInProcess(storage)
  home = makeHome()
})
after(async () => {
  home[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
  await storage[Symbol.asyncDispose]()
})

const env = () => ({ ...storage.env, ...home.env, PINFOLD_API: server.url, DOCKER_CONFIG: join(home.home, 'docker') })

/** Runs a command as the operator of the data folder, and fails on an error unless a test expects it. */
async function iam(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await attempt(...args)
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  return stdout
}

const attempt = (...args: string[]): Promise<Run> => run([...args, ...storage.args], { env: env() })
const rowsOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

test('creates, shows, changes and deletes organizations and folders by their names, without uids', async () => {
  await iam('orgs', 'create', 'acme', '--description', 'The company')
  await iam('folders', 'create', 'team', '--in', 'acme')
  await iam('folders', 'create', 'blue', '--in', 'acme/team', '--description', 'Works on it')
  assert.deepEqual(rowsOf(await iam('orgs', 'list')), [
    ['NAME', 'DESCRIPTION'],
    ['acme', 'The company'],
  ])
  assert.equal(await iam('folders', 'list', '--in', 'acme', '-r', '-o', 'tree'), 'acme\n└─ team\n   └─ blue\n')
  assert.match(await iam('folders', 'describe', 'acme/team/blue'), /^description +Works on it$/m)

  await iam('folders', 'update', 'acme/team/blue', '--name', 'green', '--description', '')
  const described = await iam('folders', 'describe', 'acme/team/green')
  assert.doesNotMatch(described, /description/)
  await iam('folders', 'delete', 'acme/team/green', '--yes')
  assert.match(
    (await attempt('folders', 'describe', 'acme/team/green')).stderr,
    /there is no folder green in acme\/team/,
  )
})

test('shows a list in each format, and JSON has the fields of version 1', async () => {
  await iam('orgs', 'create', 'globex', '--description', '=1+1, "quoted"')
  const shown = async (format: string) => (await iam('orgs', 'list', '-o', format)).split('\n')
  const { items } = JSON.parse((await shown('json')).join('\n'))
  const globex = items.find(({ name }: { name: string }) => name === 'globex')
  assert.match(globex.id, /^[0-9a-f]{40}$/)
  assert.equal(typeof globex.createdAt, 'string')
  assert.ok((await shown('id')).includes(globex.id))
  assert.ok((await shown('terse')).includes('globex'))
  assert.ok((await shown('csv')).includes(`globex,"'=1+1, ""quoted"""`))
  assert.ok((await shown('markdown')).includes('| globex | =1+1, "quoted" |'))
  assert.match((await shown('wide'))[0]!, /^NAME +DESCRIPTION +UID +CREATED$/)
  assert.deepEqual(await shown('none'), [''])
  const [id] = (await iam('orgs', 'describe', 'globex', '-o', 'env')).split('\n')
  assert.equal(id, `export PINFOLD_ORGANIZATION_ID='${globex.id}'`)
  assert.equal((await attempt('orgs', 'list', '-o', 'yaml')).code, 64)
})

test('creates an identity by its claims, and binds it to roles by name', async () => {
  await iam('orgs', 'create', 'initech')
  await iam(
    'identities',
    'create',
    'ci',
    '--in',
    'initech',
    '--identity-issuer',
    'https://ci.example',
    '--subject-pattern',
    'job:.*',
    '--claim',
    'team=blue',
    '--role',
    'viewer,registry.push',
  )
  const made = JSON.parse(await iam('identities', 'describe', 'initech/ci', '-o', 'json'))
  assert.deepEqual(made.claimMatch, {
    issuer: 'https://ci.example',
    subjectPattern: 'job:.*',
    claims: { team: 'blue' },
    claimPatterns: {},
  })
  const bindings = rowsOf(await iam('members', 'list', '--in', 'initech', '--identity', 'ci'))
  assert.deepEqual(
    bindings
      .slice(1)
      .map((row) => row.slice(0, 3))
      .sort(),
    [
      ['ci', 'registry.push', 'initech'],
      ['ci', 'viewer', 'initech'],
    ],
  )
  await iam('identities', 'update', 'ci', '--subject', 'job', '--identity-issuer', 'https://ci2.example')
  const changed = JSON.parse(await iam('identities', 'describe', 'ci', '-o', 'json'))
  assert.deepEqual([changed.claimMatch.issuer, changed.claimMatch.subject], ['https://ci2.example', 'job'])
  assert.deepEqual(rowsOf(await iam('identities', 'list', '--in', 'initech', '--relationship', 'static')).length, 1)
  await iam('identities', 'delete', 'ci', '-y')
  assert.equal((await attempt('identities', 'describe', 'ci')).code, 1)
})

test('deletes a new identity if it cannot be bound', async () => {
  await iam('orgs', 'create', 'hooli')
  const args = [
    'identities',
    'create',
    'ci',
    '--in',
    'hooli',
    '--identity-issuer',
    'https://ci.example',
    '--subject',
    'x',
  ]
  assert.match((await attempt(...args, '--role', 'nosuch')).stderr, /there is no role nosuch that you can see/)
  assert.equal(rowsOf(await iam('identities', 'list', '--in', 'hooli')).length, 1)
})

test('shortcuts create rules for the tokens of a platform, and print its configuration', async () => {
  await iam('orgs', 'create', 'umbrella')
  const api = server.url
  const matchOf = async (name: string) =>
    JSON.parse(await iam('identities', 'describe', `umbrella/${name}`, '-o', 'json')).claimMatch
  const github = await iam(
    'identities',
    'create',
    'github',
    'gh',
    '--in',
    'umbrella',
    '--repository',
    'acme/app.js',
    '--repository-id',
    '7',
  )
  assert.match(github, new RegExp(`id-token: write[\\s\\S]*PINFOLD_API: ${api}\n  PINFOLD_IDENTITY: [0-9a-f/]{57}\n`))
  const { subjectPattern, claims, issuer } = await matchOf('gh')
  assert.deepEqual([issuer, claims], ['https://token.actions.githubusercontent.com', { repository_id: '7' }])
  const subject = new RegExp(`^(?:${subjectPattern})$`)
  for (const good of ['repo:acme/app.js:ref:refs/heads/main', 'repo:acme@1/app.js@7:ref:refs/heads/main'])
    assert.match(good, subject)
  for (const bad of [
    'repo:acme/app-js:ref:refs/heads/main',
    'repo:acme/app.js:ref:refs/heads/mainly',
    'repo:acme/app.js:environment:main',
  ]) {
    assert.doesNotMatch(bad, subject)
  }
  const gitlab = await iam(
    'identities',
    'create',
    'gitlab',
    'gl',
    '--in',
    'umbrella',
    '--project',
    'acme/app',
    '--ref',
    'v1',
    '--ref-type',
    'tag',
  )
  assert.match(gitlab, new RegExp(`aud: ${new URL(api).host}`))
  assert.equal((await matchOf('gl')).subject, 'project_path:acme/app:ref_type:tag:ref:v1')
  const pod = await iam(
    'identities',
    'create',
    'kubernetes',
    'k8s',
    '--in',
    'umbrella',
    '--cluster-issuer',
    'https://oidc.example',
    '--namespace',
    'shop',
  )
  assert.match(pod, /serviceAccountToken: .*path: pinfold/)
  assert.equal((await matchOf('k8s')).subject, 'system:serviceaccount:shop:default')
  const json = await iam(
    'identities',
    'create',
    'github',
    'gh2',
    '--in',
    'umbrella',
    '--repository',
    'acme/app',
    '-o',
    'json',
  )
  assert.equal(JSON.parse(json).name, 'gh2', 'programs get nothing besides')
  assert.equal(
    (await attempt('identities', 'create', 'github', 'x', '--in', 'umbrella', '--repository', 'app')).code,
    64,
  )
})

test('adds capabilities to roles and removes them', async () => {
  await iam('orgs', 'create', 'vandelay')
  await iam('roles', 'create', 'maker', '--in', 'vandelay', '--capabilities', 'repo.create,repo.list')
  await iam(
    'roles',
    'update',
    'vandelay/maker',
    '--add-capabilities',
    'tag.list',
    '--remove-capabilities',
    'repo.create',
  )
  const { capabilities } = JSON.parse(await iam('roles', 'describe', 'maker', '-o', 'json'))
  assert.deepEqual(capabilities.sort(), ['CAP_REPO_LIST', 'CAP_TAG_LIST'])
  assert.ok((await iam('roles', 'list', '--managed', '-o', 'terse')).split('\n').includes('registry.push'))
  assert.match(
    await iam('roles', 'capabilities', 'list', '--resources', 'repo', '--actions', 'create,list'),
    /^repo\.create\nrepo\.list\n$/,
  )
  assert.match((await attempt('roles', 'update', 'maker')).stderr, /nothing was changed: give at least one of --name/)
})

test('members and invitations accept and show names of identities and roles', async () => {
  await iam('orgs', 'create', 'wonka')
  await iam('identities', 'create', 'ci', '--in', 'wonka', '--identity-issuer', 'https://ci.example', '--subject', 'x')
  await iam('members', 'add', 'wonka/ci', '--in', 'wonka', '--role', 'viewer')
  const uid = (await iam('members', 'list', '--in', 'wonka', '--role', 'viewer', '-o', 'id')).trim()
  assert.match(await iam('members', 'update', uid, '--role', 'editor'), /^role +editor$/m)
  await iam('members', 'remove', uid, '--yes')
  assert.equal((await iam('members', 'list', '--in', 'wonka', '--role', 'editor', '-o', 'id')).trim(), '')

  const invite = JSON.parse(
    await iam(
      'invitations',
      'create',
      '--in',
      'wonka',
      '--role',
      'viewer',
      '--ttl',
      '7d',
      '--single-use',
      '-o',
      'json',
    ),
  )
  assert.ok(invite.code.length > 40)
  assert.doesNotMatch(await iam('invitations', 'list', '--in', 'wonka', '-o', 'json'), new RegExp(invite.code))
  await iam('invitations', 'delete', invite.id, '--yes')
  assert.equal((await attempt('invitations', 'create', '--in', 'wonka', '--role', 'viewer', '--ttl', 'soon')).code, 64)
})

test('links, shows and unlinks cloud accounts', async () => {
  await iam('orgs', 'create', 'stark')
  await iam('cloud-accounts', 'link', 'aws', 'stark', '--account', '123456789012')
  await iam('cloud-accounts', 'link', 'gcp', 'stark', '--project-id', 'stark', '--project-number', '42')
  assert.match(await iam('cloud-accounts', 'describe', 'stark'), /^aws +123456789012\ngcp +stark$/m)
  await iam('cloud-accounts', 'unlink', 'aws', 'stark', '--yes')
  assert.doesNotMatch(await iam('cloud-accounts', 'describe', 'stark'), /^aws/m)
})

test('deletions without a terminal require --yes, and groups that are not empty are kept', async () => {
  await iam('orgs', 'create', 'oscorp')
  await iam('folders', 'create', 'lab', '--in', 'oscorp')
  const asked = await attempt('orgs', 'delete', 'oscorp')
  assert.equal(asked.code, 64)
  assert.match(asked.stderr, /would delete the organization oscorp.*add --yes/)
  const kept = await attempt('orgs', 'delete', 'oscorp', '--yes')
  assert.match(kept.stderr, /still has folders; delete them first/)
  await iam('folders', 'delete', 'oscorp/lab', '--yes')
  await iam('orgs', 'delete', 'oscorp', '--yes')
})

test('an unknown name lists the existing ones, and an ambiguous one lists its uids', async () => {
  const missing = await attempt('folders', 'list', '--in', 'nosuch')
  assert.equal(missing.code, 1)
  assert.match(
    missing.stderr,
    /there is no organization nosuch that you can see\n.*you can see: .*; to create it: pinfold orgs create nosuch/,
  )
  for (const org of ['tyrell', 'weyland']) {
    await iam('orgs', 'create', org)
    await iam('roles', 'create', 'twin', '--in', org, '--capabilities', 'repo.list')
  }
  const several = await attempt('roles', 'describe', 'twin')
  assert.match(several.stderr, /several roles have the name twin; give GROUP\/twin/)
  assert.equal((await attempt('roles', 'describe', 'weyland/twin')).code, 0)
})

test('a signed-in user, or one with a token, acts as themselves also next to a data folder', async () => {
  await iam('orgs', 'create', 'cyberdyne')
  const uid = (
    await iam(
      'identities',
      'create',
      'reader',
      '--in',
      'cyberdyne',
      '--identity-issuer',
      'https://ci.example',
      '--subject',
      'r',
      '--role',
      'viewer',
      '-o',
      'id',
    )
  ).trim()
  const token = await tokenOf(storage, ['--identity', uid])
  const as = (...args: string[]) => run(args, { env: { ...home.env, PINFOLD_API: server.url, PINFOLD_TOKEN: token } })
  const listed = await as('orgs', 'list', '-o', 'terse')
  assert.equal(listed.stdout, 'cyberdyne\n', 'only their own organization')
  for (const [args, lacking] of [
    [['folders', 'create', 'x', '--in', 'cyberdyne'], 'groups.create'],
    [['repos', 'create', 'cyberdyne/x'], 'repo.create'],
  ] as const) {
    const refused = await as(...args)
    assert.equal(refused.code, 77)
    const says = `the caller does not have the capability ${lacking} here; ask an owner of the organization for a role with it`
    assert.ok(refused.stderr.includes(says), refused.stderr)
  }
})

test('a command creates an organization and signs in clients on this machine', async () => {
  const made = await attempt('orgs', 'create', 'aperture', '--configure-docker')
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stderr, /(?:may|can) push to \S+\/aperture until/)
  const host = new URL(server.url).host
  const config = JSON.parse(readFileSync(join(home.home, 'docker/config.json'), 'utf8'))
  const authorization = `Basic ${config.auths[host].auth}`
  const scope = 'repository:aperture/app:push,pull'
  const res = await fetch(`${server.url}/token?service=${host}&scope=${encodeURIComponent(scope)}`, {
    headers: { authorization },
  })
  assert.equal(res.status, 200)
  const { token } = (await res.json()) as { token: string }
  const begun = await fetch(`${server.url}/v2/aperture/app/blobs/uploads/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  assert.equal(begun.status, 202)
})

test('reports a data folder without a running server, and creates nothing in a wrong folder', {
  skip: onPostgres,
}, async () => {
  await using other = await createStorage()
  const list = (data: string) => run(['orgs', 'list', '--data', data], { env: home.env })
  const empty = await list(join(other.data, 'typo'))
  assert.equal(empty.code, 69)
  assert.match(empty.stderr, /no server has used .*typo yet.*\n.*pinfold serve --data .*typo.*--data/)
  assert.throws(() => readFileSync(join(other.data, 'typo')), { code: 'ENOENT' })

  const stopped = await startInProcess(other)
  await stopped[Symbol.asyncDispose]()
  const away = await list(other.data)
  assert.equal(away.code, 69)
  assert.match(away.stderr, /no server runs on the data folder .*\n.*start the server with pinfold serve --data/)
})

test('sends no token to another program that listens at the former address of a server', {
  skip: onPostgres,
}, async () => {
  await using other = await createStorage()
  const stopped = await startInProcess(other)
  await stopped[Symbol.asyncDispose]()
  await using stranger = await listenAt(new URL(stopped.url).host)
  const list = () => run(['orgs', 'list', '--data', other.data], { env: home.env })
  const { code, stderr } = await list()
  assert.deepEqual([code, stranger.heard], [69, []], stderr)
  // A command that uses the folder alone does not count as a server.
  await withOperator(terminal, { data: other.data }, async () => {
    const meanwhile = await list()
    assert.deepEqual([meanwhile.code, stranger.heard], [69, []], meanwhile.stderr)
  })
  const many = await Promise.all(Array.from({ length: 4 }, list))
  assert.deepEqual([many.map((one) => one.code), stranger.heard], [[69, 69, 69, 69], []])
  await using again = await startInProcess(other)
  assert.equal((await list()).code, 0, again.url)
})

test('with a database, the server must be named, and tokens are sent only over https', {
  skip: !onPostgres,
}, async () => {
  const list = (api: string, ...args: string[]) => {
    const { PINFOLD_API: _, ...rest } = env()
    return run(['orgs', 'list', ...storage.args, ...args], {
      env: { ...rest, ...(api && { PINFOLD_API: api }) },
    })
  }
  const unnamed = await list('')
  assert.equal(unnamed.code, 78)
  assert.match(unnamed.stderr, /give the URL of the server with --api or PINFOLD_API/)
  assert.equal((await list(server.url)).code, 0)
  assert.equal((await list('', '--api', server.url)).code, 0)
  const open = await list('http://registry.example.invalid')
  assert.equal(open.code, 78)
  assert.match(open.stderr, /over https only, and http:\/\/registry\.example\.invalid is not/)
})

/** A program other than Pinfold; `heard` contains the credentials that it received. */
async function listenAt(host: string) {
  const heard: string[] = []
  const listening = createServer((req, res) => {
    heard.push(String(req.headers.authorization))
    res.end('{}')
  })
  const { hostname, port } = new URL(`http://${host}`)
  listening.listen(Number(port), hostname)
  await once(listening, 'listening')
  return {
    heard,
    async [Symbol.asyncDispose]() {
      listening.closeAllConnections()
      await promisify(listening.close.bind(listening))()
    },
  }
}

test('prints no characters that control the terminal or change the order of the text', async () => {
  const description = 'a\u009b2Jb\u202ec\u2066d'
  await iam('orgs', 'create', 'quiet', '--description', description)
  const bad = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
  for (const format of ['json', 'table', 'csv', 'markdown', 'terse']) {
    assert.doesNotMatch(await iam('orgs', 'list', '-o', format), bad, format)
  }
  const told = await iam('orgs', 'describe', 'quiet', '-o', 'json')
  assert.doesNotMatch(told, bad)
  assert.equal(JSON.parse(told).description, description)
  const missing = await attempt('orgs', 'describe', 'no\u009b2Jbody')
  assert.match(missing.stderr, /there is no organization no 2Jbody/)
})
