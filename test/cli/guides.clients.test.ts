// Guides on clients: push tokens, update bots, CI jobs, Kubernetes and cloud accounts.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { parse } from 'yaml'
import { ok } from '../support/expect.ts'
import { startClouds } from '../support/fake-clouds.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { looseToken } from '../support/fake-sts.ts'
import { openShell, readGuide, type Stub } from '../support/guides.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { run, runProcess } from '../support/process.ts'
import { registryClient, startRegistry } from '../support/registry.ts'

const recorded: Stub = () => ({})
const curl = (await runProcess(['-c', 'command -v curl'], { command: 'sh' })).stdout.trim()
const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})

test('the guide on push tokens works as written', async () => {
  const { text, sh } = readGuide('push-tokens')
  await using registry = await startRegistry()
  const { org, seed, url } = registry
  await seed.group(org.uid, { name: 'team' })
  const { uid } = await seed.person({ name: 'ada' })
  await seed.binding(org.uid, uid, roleUids.owner)
  await using shell = await openShell(
    { PINFOLD_API: url, PINFOLD_TOKEN: await registry.tokenFor(uid) },
    { docker: recorded },
  )
  const host = new URL(url).host
  const { stdout } = await shell.paste(sh[0]!, { 'registry.example.com': host })
  const user = /^user +(pt-\w{8})$/m.exec(stdout)![1]!
  const password = /^password +(\S+)$/m.exec(stdout)![1]!
  assert.deepEqual(shell.calls(), [{ program: 'docker', args: ['login', '--username', 'pt-7k3mq9xw', host] }])

  const pattern = /pattern\s`([^`]+)`/.exec(text)![1]!
  assert.match(password, new RegExp(`^${pattern}$`))
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const sum = [...password.slice(-6)].reduce((total, digit) => total * 62 + digits.indexOf(digit), 0)
  assert.equal(sum, crc32(password.slice(0, -6)))

  const scope = '/token?scope=repository:acme/team/app:pull,push,delete'
  const { token, expires_in: seconds } = ok(
    await registry.anonymous.call('GET', scope, undefined, basic(user, password)),
  )
  assert.equal(seconds, 300)
  const client = registryClient(`http://127.0.0.1:${registry.port}`, token)
  const { digest } = await client.pushImage('acme/team/app', 'v1')
  const direct = registryClient(`http://127.0.0.1:${registry.port}`, undefined)
  const headers = basic(user, password)
  await direct.ok(200, 'GET', 'acme/team/app/manifests/v1', { headers })
  assert.equal((await direct.call('DELETE', `acme/team/app/manifests/${digest}`, { headers })).status, 403)
  assert.equal((await registry.anonymous.call('GET', '/registry/v2/repos', undefined, headers)).status, 401)

  const listed = await shell.paste(sh[1]!, { 'pt-7k3mq9xw': user })
  assert.match(listed.stdout, new RegExp(`^${user} +laptop +push +acme/team +\\S+Z +\\S+Z from 127\\.0\\.0\\.1$`, 'm'))
  assert.equal((await registry.anonymous.call('GET', scope, undefined, headers)).status, 401)
})

test('the guide on update bots works as written', async () => {
  const guide = readGuide('update-bots')
  await using registry = await startRegistry()
  const { url } = registry
  await using shell = await openShell({ PINFOLD_API: url, PINFOLD_TOKEN: registry.operator.token! })
  const { stdout } = await shell.paste(guide.sh[0]!)
  const [, user] = /^user +(\S+)$/m.exec(stdout)!
  const [, password] = /^password +(\S+)$/m.exec(stdout)!

  const [config] = guide.blocks('js')
  const module: { exports: Json } = { exports: {} }
  const env = { PINFOLD_USER: user, PINFOLD_PASSWORD: password }
  new Function('module', 'process', config!)(module, { env })
  const [rule] = module.exports.hostRules
  assert.equal(rule.hostType, 'docker')
  const [dockerfile] = guide.blocks('dockerfile')
  assert.ok(dockerfile!.startsWith(`FROM ${rule.matchHost}/`))

  await registry.pusher.pushImage('acme/app', '1.0.0')
  const headers = basic(rule.username, rule.password)
  const scope = '/token?scope=repository:acme/app:pull'
  const { token } = ok(await registry.anonymous.call('GET', scope, undefined, headers))
  const client = registryClient(`http://127.0.0.1:${registry.port}`, token)
  const manifest = await client.ok(200, 'GET', 'acme/app/manifests/1.0.0')
  const [, path] = /`GET (\/v2\/<name>\/\S+)`/.exec(guide.text)!
  const history = await client.ok(200, 'GET', path!.replace('<name>', 'acme/app').replace('<tag>', '1.0.0'))
  const [since] = history.body.history as Json[]
  assert.equal(since!.digest, manifest.headers['docker-content-digest'])
  const seconds = Math.floor(Date.parse(since!.updateTimestamp) / 1000)
  assert.equal(Date.parse(String(manifest.headers['last-modified'])) / 1000, seconds)
})

/** Claims of a job's token for each platform of the CI guide, and its steps in the order of its file. */
const ofPlatforms: Record<string, { claims: Json; commit: Json; steps(file: Json): string[] }> = {
  'GitHub Actions': {
    claims: {
      sub: 'repo:octo@123456/app@456789:ref:refs/heads/main',
      repository_id: '456789',
      repository_owner_id: '123456',
    },
    commit: { GITHUB_SHA: 'c0ffee' },
    steps: ({ jobs, permissions }) => {
      assert.equal(permissions['id-token'], 'write')
      return jobs.push.steps.flatMap(({ run }: Json) => (run ? [run] : []))
    },
  },
  'GitLab CI': {
    claims: { sub: 'project_path:octo/app:ref_type:branch:ref:main', project_id: '46573356' },
    commit: { CI_COMMIT_SHA: 'c0ffee' },
    steps: ({ 'push-image': { before_script, script } }) => [...before_script, ...script],
  },
  Buildkite: {
    claims: {
      sub: 'organization:octo:pipeline:app:ref:refs/heads/main:commit:c0ffee:step:push-image',
      organization_id: '0184990a-477b-4fa8-9968-4960744835aa',
      pipeline_id: '0184990a-4782-42b5-afc1-16715b10b1c0',
    },
    commit: { BUILDKITE_COMMIT: 'c0ffee' },
    steps: ({ steps: [{ command }] }) => [command.replaceAll('$$', '$')],
  },
}

for (const [platform, { claims, commit, steps }] of Object.entries(ofPlatforms)) {
  test(`the file for ${platform} in the CI guide signs in with its identity and pushes`, async () => {
    const { text } = readGuide('push-from-ci')
    const [, section] = new RegExp(`\n## ${platform}\n([\\s\\S]*?)\n## `).exec(text)!
    const file = parse(/```yaml\n([\s\S]*?)```/.exec(section!)![1]!) as Json
    const { env, variables } = (file.jobs?.push ?? file['push-image'] ?? file.steps[0]) as Json
    const given = (env ?? variables) as Record<string, string>
    await using issuer = await startIssuer('RS256')
    await using registry = await startRegistry({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'] })
    const { url } = registry
    const [host, origin] = [new URL(url).host, `http://127.0.0.1:${registry.port}`]
    const operator = { PINFOLD_API: url, PINFOLD_TOKEN: registry.operator.token! }
    await using author = await openShell(operator)
    // The commands of the guide create the identity. Only the issuer is that of the test.
    const own = /```sh\n([\s\S]*?)```/.exec(platform === 'GitHub Actions' ? text : section!)![1]!
    await author.paste(
      own
        .replace(/^.*orgs create.*\n/, '')
        .replaceAll('bin/pinfold', 'pinfold')
        .replaceAll('identity.json', join(author.work, 'identity.json')),
    )
    const { identities } = ok(await registry.operator.get('/iam/v2/identities')) as { identities: Json[] }
    const [{ uid, claimMatch }] = identities.filter(({ name }) => /^app-/.test(name)) as [Json]
    const mask = '?updateMask=claim_match'
    ok(
      await registry.operator.patch(`/iam/v2/identities/${uid}${mask}`, {
        claimMatch: { ...claimMatch, issuer: issuer.url },
      }),
    )

    const token = await issuer.token({ ...claims, aud: url })
    await using job = await openShell(
      {
        ...given,
        ...commit,
        REGISTRY: host,
        IMAGE: given.IMAGE!.replace('registry.example.com', host),
        IDENTITY: uid,
        ID_TOKEN: token,
        ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer.url}/github?api-version=2.0`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job',
      },
      { apk: recorded, 'buildkite-agent': () => ({ stdout: `${token}\n` }) },
    )
    assert.equal(given.REGISTRY, 'registry.example.com')
    // Docker stores the password, and records its other commands.
    const docker = '#!/bin/sh\necho "$@" >> $HOME/docker\n[ "$1" != login ] || cat > $HOME/password\n'
    writeFileSync(join(job.home.home, 'bin/docker'), docker, { mode: 0o755 })
    const answers = `#!/bin/sh\ncase "$*" in */github*) printf '{"count":1,"value":"%s"}' '${token}';; *) exec ${curl} "$@";; esac\n`
    writeFileSync(join(job.home.home, 'bin/curl'), answers, { mode: 0o755 })
    for (const step of steps(file)) await job.paste(step.replaceAll('https://$REGISTRY', () => 'http://$REGISTRY'))

    const image = `${host}/acme/app:c0ffee`
    assert.deepEqual(readFileSync(join(job.home.home, 'docker'), 'utf8').trim().split('\n'), [
      `login ${host} --username _token --password-stdin`,
      `build --tag ${image} .`,
      `push ${image}`,
    ])
    const password = readFileSync(join(job.home.home, 'password'), 'utf8').trim()
    const asked = (repo: string) =>
      registry.anonymous.call('GET', `/token?scope=repository:${repo}:pull,push`, undefined, basic('_token', password))
    const { token: granted } = ok(await asked('acme/app'))
    await registryClient(origin, granted).pushImage('acme/app', 'c0ffee')
  })
}

test('the check in the CI guide compares each claim of a token', async () => {
  const guide = readGuide('push-from-ci')
  await using pinfold = await startPinfold()
  await using shell = await openShell({ PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! })
  await shell.paste('pinfold orgs create acme')
  const create = guide.sh[0]!.split('\n').slice(1).join('\n').replace('bin/pinfold', 'pinfold')
  const { stdout } = await shell.paste(create)
  const [, uid] = /PINFOLD_IDENTITY: (\S+)/.exec(stdout)!
  const [check] = guide.blocks('')
  const file = join(shell.work, 'token.txt')
  const claims = { sub: 'repo:octo/app:ref:refs/heads/dev', aud: pinfold.url }
  writeFileSync(file, looseToken({ iss: 'https://token.actions.githubusercontent.com', ...claims }))
  const replaced = { 'UID-OF-THE-IDENTITY': uid!, 'token.txt': file }
  const { stdout: checked } = await shell.paste(`${check!.trim()} 2>&1 || true`, replaced)
  assert.match(checked, /^ok +iss /m)
  for (const claim of ['sub', 'repository_id', 'repository_owner_id'])
    assert.match(checked, new RegExp(`^no +${claim} `, 'm'))
  assert.match(checked, /^the token does not match$/m)
})

test('the guide on Kubernetes works as written', async () => {
  const guide = readGuide('pull-from-kubernetes')
  await using cluster = await startIssuer('RS256')
  await using registry = await startRegistry({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'] })
  const { url } = registry
  await using shell = await openShell(
    { PINFOLD_API: url, PINFOLD_TOKEN: registry.operator.token! },
    { kubectl: recorded },
  )
  await registry.pusher.pushImage('acme/app', 'v1')
  await shell.paste(guide.sh[0]!, { 'https://oidc.cluster.example.com': cluster.url })
  const [config] = guide.yaml()
  const [provider] = config!.providers
  const [key] = provider.tokenAttributes.requiredServiceAccountAnnotationKeys
  const [{ args } = { args: [] }] = shell.calls()
  const [verb, kind, name, , namespace, annotation] = args
  assert.deepEqual([verb, kind], ['annotate', 'serviceaccount'])
  const [annotated, identity] = annotation!.split('=')
  assert.equal(annotated, key)

  const here = (text: string) => text.replace('https://registry.example.com', url)
  const { host } = new URL(url)
  assert.deepEqual(provider.matchImages, [new URL(provider.tokenAttributes.serviceAccountTokenAudience).host])
  const token = await cluster.token({
    sub: `system:serviceaccount:${namespace}:${name}`,
    aud: here(provider.tokenAttributes.serviceAccountTokenAudience),
  })
  const request = {
    apiVersion: provider.apiVersion,
    kind: 'CredentialProviderRequest',
    image: `${host}/acme/app:v1`,
    serviceAccountToken: token,
    serviceAccountAnnotations: { [key]: identity },
  }
  const ask = async (image: string) => {
    const ran = await run(provider.args.map(here), {
      env: shell.home.env,
      input: JSON.stringify({ ...request, image }),
    })
    assert.equal(ran.code, 0, ran.stderr)
    return JSON.parse(ran.stdout) as Json
  }
  const answer = await ask(request.image)
  assert.equal(answer.cacheKeyType, 'Registry')
  const { username, password } = answer.auth[host]
  const scope = '/token?scope=repository:acme/app:pull'
  const given = ok(await registry.anonymous.call('GET', scope, undefined, basic(username, password)))
  const client = registryClient(`http://127.0.0.1:${registry.port}`, given.token)
  await client.ok(200, 'GET', 'acme/app/manifests/v1')
  assert.equal((await ask('docker.io/library/alpine:latest')).auth, null)
})

test('the guide on cloud accounts works as written', async () => {
  const guide = readGuide('link-cloud-accounts')
  await using clouds = await startClouds()
  await using pinfold = await startPinfold({
    awsStsUrl: clouds.url,
    googleStsUrl: clouds.url,
    googleIamUrl: clouds.url,
    azureLoginUrl: clouds.url,
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
  })
  const { uid } = await pinfold.seed.group('', { name: 'acme' })
  const { url } = pinfold
  const after = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]!
  const equal = (args: readonly string[], flag: string) =>
    args.find((word) => word.startsWith(`${flag}=`))!.slice(flag.length + 1)
  const account = '123456789012'
  const [tenant, application] = ['7f5a6e3c-0000-4000-8000-000000000001', '7f5a6e3c-0000-4000-8000-000000000002']
  let issuer = ''
  const audiences: string[] = []
  const aws: Stub = ([, action, ...args]) => {
    if (action === 'create-open-id-connect-provider') {
      issuer = after(args, '--url')
      audiences.push(after(args, '--client-id-list'))
      return {}
    }
    const [statement] = JSON.parse(after(args, '--assume-role-policy-document')).Statement
    const host = new URL(issuer).host
    assert.equal(statement.Action, 'sts:AssumeRoleWithWebIdentity')
    assert.equal(statement.Principal.Federated, `arn:aws:iam::${account}:oidc-provider/${host}`)
    const { [`${host}:aud`]: audience, [`${host}:sub`]: subject } = statement.Condition.StringEquals
    assert.ok(audiences.includes(audience))
    clouds.trust(`arn:aws:iam::${account}:role/${after(args, '--role-name')}`, { issuer, subject, audience })
    return {}
  }
  const gcloud: Stub = (args) => {
    const words = args.join(' ')
    if (words.includes('create-oidc')) {
      const [name, pool] = [after(args, 'create-oidc'), equal(args, '--workload-identity-pool')]
      assert.equal(equal(args, '--attribute-mapping'), 'google.subject=assertion.sub')
      const provider = `//iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/${pool}/providers/${name}`
      const trust = { issuer: equal(args, '--issuer-uri'), subject: `canary:${uid}`, audience: `https:${provider}` }
      clouds.trust(provider, trust)
    }
    if (words.includes('add-iam-policy-binding')) {
      assert.equal(equal(args, '--role'), 'roles/iam.workloadIdentityUser')
      const member = equal(args, '--member')
      const prefix =
        'principal://iam.googleapis.com/projects/42/locations/global/workloadIdentityPools/pinfold-pool/subject/'
      assert.ok(member.startsWith(prefix), member)
      const trust = { issuer: url, subject: member.slice(prefix.length), audience: '' }
      clouds.trust(after(args, 'add-iam-policy-binding'), trust)
    }
    return {}
  }
  const az: Stub = (args) => {
    const { issuer, subject, audiences } = JSON.parse(after(args, '--parameters'))
    clouds.trust(`${tenant} ${after(args, '--id')}`, { issuer, subject, audience: audiences[0] })
    return {}
  }
  await using shell = await openShell({ PINFOLD_API: url, PINFOLD_TOKEN: pinfold.operator.token! }, { aws, gcloud, az })
  const server = { 'https://PINFOLD': url, GROUP: uid }
  const [link, amazon, google, azure] = guide.sh
  const before = await shell.paste(`${link!} true`.replace('check aws acme\n', 'check aws acme ||'))
  assert.match(before.stdout, /does not trust this server: AWS responded with HTTP 403/)
  await shell.paste(amazon!, { ...server, PINFOLD: new URL(url).host, ACCOUNT: account })
  const check = (cloud: string) => shell.paste(`pinfold cloud-accounts check ${cloud} acme`)
  assert.match((await check('aws')).stdout, /trusts this server/)
  await shell.paste('pinfold cloud-accounts link gcp acme --project-id wonder --project-number 42')
  await shell.paste(google!, { ...server, PROJECT: 'wonder', NUMBER: '42' })
  assert.match((await check('gcp')).stdout, /trusts this server/)
  await shell.paste(`pinfold cloud-accounts link azure acme --tenant-id ${tenant} --client-id canary=${application}`)
  await shell.paste(azure!, { ...server, CLIENT_ID: application })
  assert.match((await check('azure')).stdout, /trusts this server/)
})
