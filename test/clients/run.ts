// Programs that we did not write, against the real server: curl, grpcurl, and schemathesis with calls made from the OpenAPI
// documents. Needs grpcurl and schemathesis on the PATH, and vendor-names, which is built from the folder of that name and
// calls a server with a compatibility profile. `--calls N` sets about how many random calls are made.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildEndpoints, type Endpoint } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { clientOf } from '../support/pinfold.ts'

const root = join(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { calls: { type: 'string', default: '2000' } } })
const folder = mkdtempSync(join(tmpdir(), 'pinfold-clients-'))
let passed = 0
let failed = 0

function expect(name: string, ok: boolean, seen: string): void {
  if (ok) passed++
  else failed++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${ok ? '' : `\n${seen}`}`)
}

function sh(command: string, args: string[]): { code: number; out: string } {
  const env = { ...process.env, SCHEMATHESIS_HOOKS: 'schemathesis_hooks', PYTHONPATH: import.meta.dirname }
  const done = spawnSync(command, args, { cwd: folder, env, encoding: 'utf8', maxBuffer: 64 << 20 })
  if (done.error) throw done.error
  return { code: done.status ?? 1, out: done.stdout + done.stderr }
}

async function startServer(
  data: string,
  settings: Record<string, string> = {},
): Promise<{ server: ChildProcess; url: string }> {
  const database = process.env.PINFOLD_TEST_DATABASE
  const args = ['serve', '--data', join(folder, data), '--listen', '127.0.0.1:0', '--demo']
  const server = spawn(join(root, 'bin/pinfold'), args, {
    env: { ...process.env, PINFOLD_LOG_LEVEL: 'error', PINFOLD_TEST_DATABASE: database ?? '', ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    server.stdout.on('data', (chunk: Buffer) => {
      text += chunk
      const ready = /^ready (\S+)$/m.exec(text)
      if (ready) resolve(ready[1]!)
    })
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
  })
  return { server, url }
}

function tryGrpcurl(url: string, token: string, org: string): void {
  const host = new URL(url).host
  const bearer = ['-H', `authorization: Bearer ${token}`]
  const listed = sh('grpcurl', ['-plaintext', host, 'list'])
  for (const { desc } of services)
    expect(`grpcurl lists ${desc.typeName}`, listed.out.includes(desc.typeName), listed.out)
  const described = sh('grpcurl', ['-plaintext', host, 'describe', 'pinfold.platform.registry.v2.ReposService.GetRepo'])
  expect('grpcurl describes a method', described.out.includes('GetRepoRequest'), described.out)
  const call = (method: string, body: object) => {
    return sh('grpcurl', ['-plaintext', ...bearer, '-d', JSON.stringify(body), host, `pinfold.platform.${method}`])
  }
  const created = call('registry.v2.ReposService/CreateRepo', { parent: org, repo: { name: 'by-grpcurl' } })
  expect('grpcurl creates a repo', created.code === 0 && created.out.includes('by-grpcurl'), created.out)
  const uid = (JSON.parse(created.out) as { uid: string }).uid
  const got = call('registry.v2.ReposService/GetRepo', { uid })
  expect('grpcurl gets it', got.out === created.out, got.out)
  const bad = call('registry.v2.ReposService/CreateRepo', { parent: org, repo: { name: 'No!' } })
  expect('grpcurl shows the typed error', /InvalidArgument[\s\S]*BadRequest/.test(bad.out), bad.out)
  const health = sh('grpcurl', ['-plaintext', host, 'grpc.health.v1.Health/Check'])
  expect('grpcurl asks for health', health.out.includes('SERVING'), health.out)
}

/** Calls the server through its own certificate, with clients that trust the certificate and one that does not. */
async function tryTls(): Promise<void> {
  const [cert, key] = ['server.crt', 'server.key'].map((name) => join(folder, name)) as [string, string]
  const made = sh('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=server', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
  ])
  if (made.code !== 0) throw new Error(made.out)
  const { server, url } = await startServer('tls', { PINFOLD_TLS_CERT: cert, PINFOLD_TLS_KEY: key })
  try {
    const host = `localhost:${new URL(url).port}`
    const token = sh(join(root, 'bin/pinfold'), ['token', '--data', join(folder, 'tls')]).out.trim()
    const ask = (...more: string[]) =>
      sh('curl', ['-sS', '-H', `Authorization: Bearer ${token}`, ...more, `https://${host}/iam/v2/groups`])
    for (const version of ['--http1.1', '--http2']) {
      const listed = ask('--cacert', cert, version)
      expect(`curl ${version} lists groups over TLS`, listed.out.includes('"groups":[{'), listed.out)
    }
    expect('curl asks no server whose certificate it does not trust', ask().code === 60, ask().out)
    const check = (...more: string[]) => sh('grpcurl', [...more, host, 'grpc.health.v1.Health/Check'])
    const health = check('-cacert', cert)
    expect('grpcurl asks for health over TLS', health.out.includes('SERVING'), health.out)
    expect('grpcurl neither', check().out.includes('certificate'), check().out)
    const plain = check('-plaintext')
    expect('grpcurl gets nothing in cleartext there', plain.code !== 0, plain.out)
  } finally {
    await stopServer(server)
  }
}

function tryCurl(url: string, token: string, org: string): void {
  const auth = ['-s', '-H', `Authorization: Bearer ${token}`]
  const created = sh('curl', [...auth, `${url}/registry/v2/repos/${org}`, '-d', '{"name":"by-curl"}'])
  expect('curl -d without a content type creates a repo', created.out.includes('"name":"by-curl"'), created.out)
  const listed = sh('curl', [
    ...auth,
    '-G',
    `${url}/registry/v2/repos`,
    '-d',
    `uidp.descendants_of=${org}`,
    '-d',
    'name=by-curl',
  ])
  expect('curl finds it by name', listed.out.includes('"totalCount":"1"'), listed.out)
}

/** Makes random calls of the methods of each version. Sign-in methods are in both documents. */
function trySchemathesis(url: string, token: string, uids: Record<string, string>): void {
  const endpoints = buildEndpoints(services)
  const first = endpoints.filter(({ method }) => method.version === 'v1')
  const signIn = first.filter(({ method }) => /^pinfold\.platform\.(?:auth|oidc)\./.test(method.fullName))
  const second = [...endpoints.filter(({ method }) => method.version !== 'v1'), ...signIn]
  tryDocument(`${url}/openapi.json`, token, second, { key: 'uid', uids })
  tryDocument(`${url}/openapi-v1.json`, token, first, { key: 'id', uids })
}

/** First with random uids, then with existing uids, so that the calls pass the first checks. */
function tryDocument(
  document: string,
  token: string,
  endpoints: readonly Endpoint[],
  { key, uids }: { key: string; uids: Record<string, string> },
): void {
  const id = ({ desc }: Endpoint) => `${desc.parent.name}_${desc.name}`
  // Left out: streams, which do not end, and methods that would send requests to random hosts.
  const asksOthers = /^(?:IdentityProviders(?:Service)?_(?:Create|Update)|\w*AccountAssociations(?:Service)?_Check)/
  const isLeftOut = (endpoint: Endpoint) =>
    !endpoint.handler || endpoint.desc.methodKind === 'server_streaming' || asksOthers.test(id(endpoint))
  const absent = endpoints.filter(isLeftOut).map(id)
  const served = endpoints.filter((endpoint) => endpoint.handler)
  const examples = Math.ceil(Number(values.calls) / 2 / served.length)
  const checks = 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance'
  const round = (name: string, config: string, exclude: string[]) => {
    writeFileSync(join(folder, 'schemathesis.toml'), config)
    const done = sh('schemathesis', [
      'run',
      document,
      ...['-H', `Authorization: Bearer ${token}`, '--checks', checks, '--phases', 'coverage,fuzzing'],
      ...['-n', String(examples), '--continue-on-failure', '--suppress-health-check', 'all', '--warnings', 'off'],
      ...['--request-timeout', '120'],
      ...exclude.flatMap((operation) => ['--exclude-operation-id', operation]),
    ])
    const cases = /(\d+) generated/.exec(done.out)?.[1] ?? 'no'
    expect(
      `schemathesis: ${cases} calls of ${document} ${name} find no failure`,
      done.code === 0 && Number(cases) > 100,
      done.out.slice(-6000),
    )
  }
  round('with random uids', '', absent)
  const seeded = served.map((endpoint) => {
    const resource =
      uids[endpoint.desc.name.startsWith('Create') ? 'Group' : endpoint.desc.name.replace(/^(?:Get|Update)/, '')]
    return resource
      ? `[[operations]]\ninclude-operation-id = "${id(endpoint)}"\nparameters = { ${key} = "${resource}" }\n`
      : ''
  })
  const deletes = served.filter(({ desc }) => desc.name.startsWith('Delete')).map(id)
  round('with uids that exist', seeded.join('\n'), [...absent, ...deletes])
}

/** A source that speaks of the packages of the demo's image, without which nobody knows whether all is known of it. */
async function readSource(client: ReturnType<typeof clientOf>): Promise<void> {
  const source = { name: 'clients', url: 'https://example.com/', licence: 'MIT', ecosystems: ['Alpine:v3.20'] }
  const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }] }]
  const affected = [{ ecosystem: 'Alpine:v3.20', name: 'unrelated', state: 'affected', ranges }]
  const { run } = (await client.post('/control/v1/vulnerabilitySources:begin', { source })).body
  await client.post('/control/v1/vulnerabilitySources:put', {
    run,
    records: [{ id: 'CLIENTS-1', summary: 'x', affected }],
  })
  const ended = await client.post('/control/v1/vulnerabilitySources:finish', { run, complete: true })
  expect('a source is read', ended.status === 200, ended.text)
}

/** A client of another product, whose names the server answers to. */
async function tryVendor(): Promise<void> {
  const { server, url } = await startServer('vendor', {
    PINFOLD_COMPAT_VENDOR: 'acme',
    PINFOLD_TERMS_DOCUMENTS: JSON.stringify([{ id: 'terms.v1', label: 'Terms', url: 'https://example.com/terms' }]),
    PINFOLD_TERMS_METHODS: 'pinfold.platform.iam.v2.GroupsService/UpdateGroup',
  })
  try {
    const token = sh(join(root, 'bin/pinfold'), ['token', '--data', join(folder, 'vendor')]).out.trim()
    const org = (await clientOf(url, token).post('/iam/v2/groups/', { name: 'clients' })).body.uid as string
    const product = {
      name: 'nginx',
      releases: [
        { name: '1.28', releaseDate: '2025-04-23', isEol: false },
        { name: '1.26', releaseDate: '2024-04-23', isEol: true, eolFrom: '2025-04-23' },
      ],
    }
    writeFileSync(join(folder, 'nginx.json'), JSON.stringify(product))
    const imported = sh(join(root, 'bin/pinfold'), [
      ...['lifecycles', 'import', join(folder, 'nginx.json'), '--data', join(folder, 'vendor')],
    ])
    expect('the life of a product is imported', imported.code === 0, imported.out)
    await readSource(clientOf(url, token))
    const done = sh('vendor-names', [url, 'acme', token, org])
    const counts = /^(\d+) passed, 0 failed$/m.exec(done.out)
    expect(`vendor-names: ${counts?.[1] ?? 'not all'} calls hold`, done.code === 0 && counts !== null, done.out)
  } finally {
    await stopServer(server)
  }
}

async function stopServer(server: ChildProcess): Promise<void> {
  server.kill('SIGTERM')
  await new Promise((resolve) => server.once('exit', resolve))
}

const { server, url } = await startServer('data')
try {
  const token = sh(join(root, 'bin/pinfold'), ['token', '--data', join(folder, 'data')]).out.trim()
  const client = clientOf(url, token)
  const made = async (path: string, body: object) => (await client.post(path, body)).body.uid as string
  const org = await made('/iam/v2/groups/', { name: 'clients' })
  const claimMatch = { issuer: 'https://issuer.example.com', subject: 'clients' }
  const identity = await made(`/iam/v2/identities/${org}`, { name: 'ci', claimMatch })
  const role = await made(`/iam/v2/roles/${org}`, { name: 'lister', capabilities: ['repo.list'] })
  const repo = await made(`/registry/v2/repos/${org}`, { name: 'seeded' })
  const binding = await made(`/iam/v2/roleBindings/${org}`, { identityUid: identity, roleUid: role })
  tryCurl(url, token, org)
  tryGrpcurl(url, token, org)
  await tryTls()
  await tryVendor()
  const uids = { Group: org, Identity: identity, Role: role, Repo: repo, RepoReadme: repo, RoleBinding: binding }
  trySchemathesis(url, token, uids)
} finally {
  await stopServer(server)
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
