// Registry clients of other projects with the real server: skopeo, umoci, crane and oras, which must be on the PATH, and Helm if
// it is there. `go.mod` beside this file pins crane and oras. If versitygw is there, these two also use a bucket.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { noBucket, startBucket } from '../support/bucket.ts'
import { type Client, clientOf, roleUids } from '../support/pinfold.ts'
import {
  cleanEnv,
  createStorage,
  freeAddress,
  runProcess,
  startProcess,
  type TestStorage,
  tokenOf,
} from '../support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-registry-clients-'))
let passed = 0
let failed = 0

type Done = { code: number; out: string; all: string }

function sh(command: string, args: readonly string[], env: Record<string, string> = {}): Done {
  const options = { cwd: folder, env: { ...cleanEnv(), ...env }, encoding: 'utf8', maxBuffer: 64 << 20 } as const
  const done = spawnSync(command, args, options)
  if (done.error) throw done.error
  return { code: done.status ?? 1, out: done.stdout.trim(), all: done.stdout + done.stderr }
}

/** Runs one check of a client. `holds` tests the output of the client. */
function expect(name: string, { code, out, all }: Done, holds: (out: string) => boolean = () => true): string {
  const ok = code === 0 && holds(out)
  if (ok) passed++
  else failed++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${ok ? '' : `\n${all.slice(-4000)}`}`)
  return out
}

function expectRefusal(name: string, { code, out, all }: Done): void {
  expect(name, { code: code === 0 ? 1 : 0, out, all })
}

function write(name: string, content: string | Buffer): string {
  writeFileSync(join(folder, name), content)
  return name
}

/** Credentials in the form that Docker's clients store. */
function login(hosts: string | readonly string[], name: string, token: string): Record<string, string> {
  const auth = Buffer.from(`_token:${token}`).toString('base64')
  mkdirSync(join(folder, name))
  const auths = Object.fromEntries([hosts].flat().map((host) => [host, { auth }]))
  write(`${name}/config.json`, JSON.stringify({ auths }))
  return { DOCKER_CONFIG: join(folder, name) }
}

function trySkopeo(host: string, env: Record<string, string>): void {
  const policy = write('policy.json', JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }))
  const skopeo = (command: string, ...args: string[]) =>
    sh('skopeo', ['--policy', policy, command, '--authfile', join(env.DOCKER_CONFIG!, 'config.json'), ...args])
  const insecure = ['--src-tls-verify=false', '--dest-tls-verify=false']
  write('file.txt', randomBytes(300_000))
  for (const args of [
    ['init', '--layout', 'lay'],
    ['new', '--image', 'lay:v1'],
    ['insert', '--image', 'lay:v1', 'file.txt', '/f'],
  ]) {
    expect(`umoci ${args[0]}`, sh('umoci', args))
  }
  const app = `docker://${host}/acme/skopeo/app`
  expect('skopeo pushes an image', skopeo('copy', ...insecure, 'oci:lay:v1', `${app}:v1`))
  const digest = expect(
    'skopeo inspects it',
    skopeo('inspect', '--tls-verify=false', '--format', '{{.Digest}}', `${app}:v1`),
    (out) => out.startsWith('sha256:'),
  )
  expect('skopeo pulls it', skopeo('copy', ...insecure, `${app}@${digest}`, 'oci:back:v1'))
  expect(
    'what came back is the same',
    sh('cmp', [`lay/blobs/sha256/${digest.slice(7)}`, `back/blobs/sha256/${digest.slice(7)}`]),
  )
  expect(
    'skopeo copies to another repository',
    skopeo('copy', ...insecure, `${app}:v1`, `${app.replace('/app', '/copy')}:v1`),
  )
  expect('skopeo pushes as Docker does', skopeo('copy', ...insecure, '--format', 'v2s2', 'oci:lay:v1', `${app}:docker`))
  expect('skopeo pushes again', skopeo('copy', ...insecure, 'oci:lay:v1', `${app}:v2`))
  expect('skopeo lists tags', skopeo('list-tags', '--tls-verify=false', app), (out) =>
    /"docker",\s+"v1",\s+"v2"/.test(out),
  )
  expect('skopeo deletes', skopeo('delete', '--tls-verify=false', `${app}:docker`))
  expectRefusal('what was deleted is gone', skopeo('inspect', '--tls-verify=false', `${app}:docker`))
}

function tryCrane(host: string, env: Record<string, string>, reader: Record<string, string>): void {
  const crane = (...args: string[]) => sh('crane', args, env)
  write('layer.txt', randomBytes(200_000))
  sh('tar', ['-cf', 'layer.tar', 'layer.txt'])
  const app = `${host}/acme/crane/app`
  expect('crane makes an image', crane('append', '--oci-empty-base', '-f', 'layer.tar', '-t', `${app}:v1`))
  const digest = expect('crane reads its digest', crane('digest', `${app}:v1`), (out) => out.startsWith('sha256:'))
  expect('crane validates it', crane('validate', '--remote', `${app}:v1`))
  expect('crane tags it', crane('tag', `${app}:v1`, 'stable'))
  expect('crane copies it', crane('cp', `${app}:v1`, `${host}/acme/crane/copy:v1`))
  expect('the copy is the same', crane('digest', `${host}/acme/crane/copy:v1`), (out) => out === digest)
  expect('crane makes an index', crane('index', 'append', '-m', `${app}:v1`, '-t', `${app}:multi`))
  expect('crane lists tags', crane('ls', app), (out) => out.split('\n').sort().join() === 'multi,stable,v1')
  expect('crane pulls', crane('pull', `${app}@${digest}`, 'crane.tar'))
  expectRefusal('somebody who may only pull does not push', sh('crane', ['tag', `${app}:v1`, 'mine'], reader))
  expect('but pulls', sh('crane', ['manifest', `${app}:v1`], reader), (out) => out.includes('schemaVersion'))
  expect('crane deletes', crane('delete', `${app}@${digest}`))
  expectRefusal('its tags are gone with it', crane('digest', `${app}:stable`))
}

function tryOras(host: string, env: Record<string, string>): void {
  const oras = (...args: string[]) => sh('oras', [...args, '--plain-http'], env)
  write('sbom.json', '{"packages":[]}')
  write('data.bin', randomBytes(500_000))
  const app = `${host}/acme/oras/app`
  expect(
    'oras pushes an artifact',
    oras('push', `${app}:v1,latest`, '--artifact-type', 'application/x-data', 'data.bin:application/x-bin'),
  )
  expect(
    'oras attaches another',
    oras('attach', `${app}:v1`, '--artifact-type', 'application/x-sbom', 'sbom.json:application/json'),
  )
  const found = expect(
    'oras discovers it',
    oras('discover', `${app}:v1`, '--artifact-type', 'application/x-sbom', '--format', 'json'),
    (out) => out.includes('application/x-sbom'),
  )
  expect('and its digest', { code: 0, out: found, all: found }, (out) => /sha256:[0-9a-f]{64}/.test(out))
  mkdirSync(join(folder, 'pulled'))
  expect('oras pulls', oras('pull', `${app}:latest`, '-o', 'pulled'))
  const same = readFileSync(join(folder, 'pulled/data.bin')).equals(readFileSync(join(folder, 'data.bin')))
  expect('what came back is the same', { code: same ? 0 : 1, out: '', all: 'it differs' })
  expect(
    'oras copies with all that refers to it',
    sh('oras', ['copy', '-r', '--from-plain-http', '--to-plain-http', `${app}:v1`, `${host}/acme/oras/copy:v1`], env),
  )
  expect('and it is found there', oras('discover', `${host}/acme/oras/copy:v1`), (out) =>
    out.includes('application/x-sbom'),
  )
  expect('oras tags', oras('tag', `${app}:v1`, 'v1.0'))
  expect('oras lists tags', oras('repo', 'tags', app), (out) => out.split('\n').sort().join() === 'latest,v1,v1.0')
  expect('oras pushes a blob', oras('blob', 'push', app, 'sbom.json'))
  expect('oras deletes', oras('manifest', 'delete', '--force', `${app}:v1.0`))
}

/**
 * Pulls through both kinds of views and a combination, by a tag that had one image for a month and has had another one since
 * today.
 */
async function tryViews(
  host: string,
  { env, reader, operator }: { env: Record<string, string>; reader: Record<string, string>; operator: Client },
): Promise<void> {
  const app = 'acme/views/app'
  const crane = (...args: string[]) => sh('crane', args, reader)
  const policy = ['--policy', 'policy.json']
  const authfile = ['--authfile', join(reader.DOCKER_CONFIG!, 'config.json')]
  const append = (tag: string) =>
    sh('crane', ['append', '--oci-empty-base', '-f', 'layer.tar', '-t', `${host}/${app}:${tag}`], env)
  expect('crane makes an image for views', append('first'))
  const old = expect('crane reads its digest', crane('digest', `${host}/${app}:first`))
  const monthAgo = new Date(Date.now() - 30 * 86_400_000).toISOString()
  const { body } = await operator.get('/iam/v2/groups?name=views')
  const repos = await operator.get(`/registry/v2/repos?uidp.children_of=${body.groups[0].uid}`)
  const tags = [{ name: 'stable', records: [{ time: monthAgo, digest: old }] }]
  await operator.post('/control/v1/tagHistory:import', { repoUid: repos.body.repos[0].uid, tags })
  sh('cp', ['layer.tar', 'other.tar'])
  write('other.txt', randomBytes(1000))
  sh('tar', ['-rf', 'other.tar', 'other.txt'])
  const push = ['append', '--oci-empty-base', '-f', 'other.tar', '-t', `${host}/${app}:stable`]
  expect('crane moves its tag', sh('crane', push, env))
  const present = expect('the tag has moved', crane('digest', `${host}/${app}:stable`), (out) => out !== old)
  const dayOf = (days: number) =>
    new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '')
  const views = [`at-${dayOf(10)}`, 'min-7d', `min-7d_hold-1h`, `min-7d_at-${dayOf(2)}`]
  for (const view of views) {
    const name = `${host}/${view}/${app}`
    expect(`crane reads the digest in ${view}`, crane('digest', `${name}:stable`), (out) => out === old)
    expect(`crane pulls in ${view}`, crane('pull', `${name}:stable`, 'view.tar'))
    expect(`crane lists tags in ${view}`, crane('ls', name), (out) => out === 'stable')
    expectRefusal(`crane does not push into ${view}`, sh('crane', ['tag', `${name}:stable`, 'mine'], env))
    const inspect = ['inspect', ...authfile, '--tls-verify=false', '--format', '{{.Digest}}', `docker://${name}:stable`]
    expect(`skopeo inspects in ${view}`, sh('skopeo', inspect), (out) => out === old)
    const copy = [...policy, 'copy', ...authfile, '--src-tls-verify=false', `docker://${name}:stable`]
    expect(`skopeo pulls in ${view}`, sh('skopeo', [...copy, `oci:${view}:v1`]))
    expect(`what skopeo has is of then in ${view}`, sh('ls', [`${view}/blobs/sha256/${old.slice(7)}`]))
  }
  expect('the present image is pulled by its digest', crane('pull', `${host}/min-7d/${app}@${present}`, 'view.tar'))
  expectRefusal('nothing is that old', crane('digest', `${host}/min-60d/${app}:stable`))
}

/** Pushes and pulls Helm charts under each name of the server. */
function tryHelm(hosts: readonly string[], env: Record<string, string>): void {
  if (spawnSync('helm', ['version'], { env: cleanEnv() }).error) {
    console.log('skip helm: it is not on the PATH')
    return
  }
  const home = Object.fromEntries(
    ['CACHE', 'CONFIG', 'DATA'].map((kind) => [`HELM_${kind}_HOME`, join(folder, 'helm')]),
  )
  const helm = (...args: string[]) =>
    sh('helm', args, { ...home, HELM_REGISTRY_CONFIG: join(env.DOCKER_CONFIG!, 'config.json') })
  expect('helm makes a chart', helm('create', 'web'))
  expect('helm packs it', helm('package', 'web'))
  for (const [i, host] of hosts.entries()) {
    const charts = `oci://${host}/acme/charts-${i}`
    expect(`helm pushes the chart (${host})`, helm('push', 'web-0.1.0.tgz', charts, '--plain-http'))
    expect(`helm reads it (${host})`, helm('show', 'chart', `${charts}/web`, '--plain-http'), (out) =>
      /name: web/.test(out),
    )
    mkdirSync(join(folder, `charts-${i}`))
    expect(`helm pulls it (${host})`, helm('pull', `${charts}/web`, '--plain-http', '-d', `charts-${i}`))
    expect('what came back is the same', sh('cmp', ['web-0.1.0.tgz', `charts-${i}/web-0.1.0.tgz`]))
  }
}

type Called = {
  /** Arguments with which the client uses the server. */
  host: string
  /** Arguments for a server without TLS, or with a private certificate authority. */
  skopeo: readonly string[]
  oras: readonly string[]
  crane?: readonly string[]
  trust?: string
}

/**
 * Every client pushes and pulls under this name of the server, so the challenge must lead to a token service with the same name.
 */
function tryName(name: string, { host, skopeo, oras, crane = [], trust }: Called, token: string): void {
  const repository = `${host}/acme/names/${name}`
  const config = login(host, `login-${name}`, token)
  const env = trust === undefined ? config : { ...config, SSL_CERT_FILE: join(folder, trust) }
  const authfile = ['--authfile', join(config.DOCKER_CONFIG!, 'config.json')]
  const at = (text: string) => `${text} (${name})`
  const append = ['append', ...crane, '--oci-empty-base', '-f', 'layer.tar', '-t', `${repository}:crane`]
  expect(at('crane pushes'), sh('crane', append, env))
  expect(at('crane lists tags'), sh('crane', ['ls', ...crane, repository], env), (out) => out === 'crane')
  expect(at('crane pulls'), sh('crane', ['pull', ...crane, `${repository}:crane`, `${name}.tar`], env))
  expect(at('oras pushes'), sh('oras', ['push', ...oras, `${repository}:oras`, 'sbom.json:application/json'], env))
  mkdirSync(join(folder, `oras-${name}`))
  expect(at('oras pulls'), sh('oras', ['pull', ...oras, `${repository}:oras`, '-o', `oras-${name}`], env))
  expect(at('oras lists tags'), sh('oras', ['repo', 'tags', ...oras, repository], env), (out) => out === 'crane\noras')
  const copy = ['copy', ...authfile, ...skopeo.map((one) => one.replace('--', '--dest-')), 'oci:lay:v1']
  expect(at('skopeo pushes'), sh('skopeo', ['--policy', 'policy.json', ...copy, `docker://${repository}:skopeo`], env))
  const inspect = ['inspect', ...authfile, ...skopeo, `docker://${repository}:skopeo`]
  const back = [
    'copy',
    ...authfile,
    ...skopeo.map((one) => one.replace('--', '--src-')),
    `docker://${repository}:skopeo`,
  ]
  expect(at('skopeo pulls'), sh('skopeo', ['--policy', 'policy.json', ...back, `oci:skopeo-${name}:v1`], env))
  expect(at('skopeo inspects'), sh('skopeo', inspect, env), (out) => out.includes('"Digest"'))
}

/** Creates a certificate for this machine, in `<name>.crt` and `<name>.key`. */
function makeCertificate(name: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key`]
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  const certificate = ['-subj', `/CN=${name}`, '-days', '2', '-addext', names, '-out', `${name}.crt`]
  const made = sh('openssl', ['req', '-x509', ...key, ...certificate])
  if (made.code !== 0) throw new Error(made.all)
}

/** Proxy in front of a server that ends TLS. */
async function startProxy(target: string) {
  makeCertificate('proxy')
  // The proxy has its own thread, since this thread is blocked while a client runs.
  const worker = new Worker(new URL('./tls-proxy.ts', import.meta.url), {
    workerData: {
      target,
      cert: readFileSync(join(folder, 'proxy.crt'), 'utf8'),
      key: readFileSync(join(folder, 'proxy.key'), 'utf8'),
    },
  })
  const port = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  return { port, [Symbol.asyncDispose]: async () => void (await worker.terminate()) }
}

async function firstOnLoopback(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
    const found = await lookup(name, { family: 4 }).catch(() => undefined)
    if (found?.address === '127.0.0.1') return name
  }
  return undefined
}

/** Creates an organization, and an identity with a role in it. */
async function membersAt(storage: TestStorage, url: string) {
  const operator = clientOf(url, await tokenOf(storage))
  const made = async (path: string, body: object) => (await operator.post(path, body)).body.uid as string
  const org = await made('/iam/v2/groups/', { name: 'acme' })
  const member = async (name: string, role: string) => {
    const claimMatch = { issuer: 'https://issuer.example.com', subject: name }
    const uid = await made(`/iam/v2/identities/${org}`, { name, claimMatch })
    await made(`/iam/v2/roleBindings/${org}`, { identityUid: uid, roleUid: role })
    return tokenOf(storage, ['--audience', 'registry', '--identity', uid])
  }
  return { operator, member }
}

/**
 * Larger blobs are redirected to the bucket. The bucket has another host name, since clients would send it their credentials
 * otherwise.
 */
async function tryBucket(): Promise<void> {
  if (noBucket) return console.log(`skip the bucket: ${noBucket}`)
  await using storage = await createStorage()
  await using bucket = await startBucket()
  const blobs = bucket.url(bucket.origin, `&public=${bucket.origin.replace('127.0.0.1', 'localhost')}`)
  const env = { ...bucket.aws, PINFOLD_LOG_LEVEL: 'error', PINFOLD_BLOB_REDIRECTS: 'on' }
  await using server = await startProcess(storage, { args: ['--blobs', blobs], env })
  const { member } = await membersAt(storage, server.url)
  const { host } = new URL(server.url)
  const pusher = login(host, 'bucket-pusher', await member('pusher', roleUids.push))
  const reader = login(host, 'bucket-reader', await member('reader', roleUids.pull))
  tryCrane(host, pusher, reader)
  write('large.bin', randomBytes(17 << 20))
  const app = `${host}/acme/large:v1`
  const oras = (...args: string[]) => sh('oras', [...args, '--plain-http'], pusher)
  expect('oras pushes what the bucket has in pieces', oras('push', app, 'large.bin:application/x-bin'))
  mkdirSync(join(folder, 'from-bucket'))
  expect('and pulls it', oras('pull', app, '-o', 'from-bucket'))
  expect('what came back is the same', sh('cmp', ['large.bin', 'from-bucket/large.bin']))
}

const tlsOf = (name: string) => ({
  skopeo: [],
  oras: ['--plain-http=false', '--ca-file', `${name}.crt`],
  trust: `${name}.crt`,
})

/** Without a proxy, the server has the certificate itself. */
async function tryOwnTls(): Promise<void> {
  makeCertificate('server')
  await using storage = await createStorage()
  const args = ['--tls-cert', join(folder, 'server.crt'), '--tls-key', join(folder, 'server.key')]
  await using server = await startProcess(storage, { args, env: { PINFOLD_LOG_LEVEL: 'error' } })
  const env = { ...storage.env, NODE_EXTRA_CA_CERTS: join(folder, 'server.crt') }
  const made = await runProcess(['orgs', 'create', 'acme', ...storage.args], { env })
  if (made.code !== 0) throw new Error(made.stderr)
  const token = await tokenOf(storage, ['--audience', 'registry'])
  const host = `localhost:${new URL(server.url).port}`
  tryName('own-tls', { host, ...tlsOf('server') }, token)
  const stranger = login(host, 'login-unsure', token)
  expectRefusal(
    'crane trusts no certificate that it was not given',
    sh('crane', ['ls', `${host}/acme/names/own-tls`], stranger),
  )
}

const plain = { skopeo: ['--tls-verify=false'], oras: ['--plain-http'] }
// A resolver that follows RFC 6761 resolves the first name to this machine.
const secondName = await firstOnLoopback(['registry.localhost', hostname()])

await using storage = await createStorage()
const listen = await freeAddress()
const port = listen.split(':')[1]!
await using server = await startProcess(storage, {
  listen,
  env: {
    PINFOLD_LOG_LEVEL: 'error',
    ...(secondName === undefined ? {} : { PINFOLD_HOSTS: `${secondName}:${port}` }),
    PINFOLD_TRUSTED_PROXIES: '127.0.0.1',
  },
})
try {
  const { operator, member } = await membersAt(storage, server.url)
  const { host } = new URL(server.url)
  const pusher = login(host, 'pusher', await member('pusher', roleUids.push))
  const reader = login(host, 'reader', await member('reader', roleUids.pull))
  const stranger = login(host, 'stranger', 'no-token')
  trySkopeo(host, pusher)
  tryCrane(host, pusher, reader)
  tryOras(host, pusher)
  await tryViews(host, { env: pusher, reader, operator })
  const token = await member('names', roleUids.push)
  const both = [`127.0.0.1:${port}`, `localhost:${port}`]
  tryHelm(both, login(both, 'helm', token))
  tryName('loopback', { host: `127.0.0.1:${port}`, ...plain }, token)
  tryName('localhost', { host: `localhost:${port}`, ...plain }, token)
  if (secondName === undefined) console.log('skip the second name: this machine has none on loopback')
  else tryName('second', { host: `${secondName}:${port}`, ...plain, crane: ['--insecure'] }, token)
  await using proxy = await startProxy(server.url)
  tryName('tls', { host: `localhost:${proxy.port}`, ...tlsOf('proxy') }, token)
  tryName('tls-loopback', { host: `127.0.0.1:${proxy.port}`, ...tlsOf('proxy') }, token)
  await tryOwnTls()
  await tryBucket()
  expectRefusal('a wrong password is refused', sh('crane', ['ls', `${host}/acme/crane/app`], stranger))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
