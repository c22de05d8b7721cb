// The table of clients in docs/clients.md, made by hand. The clients on the PATH log in with a push token, push and pull, at
// localhost without TLS and over TLS of the server's own. Also needs openssl, umoci and tar.
//
//   go install github.com/google/go-containerregistry/cmd/crane@latest    # oras, regctl, helm, ko and cosign the same way
//   bin/pinfold-node test/clients/table.ts [--only crane,ko,cosign]    # the other rows stay as they are
//
// The programs ko and cosign use an image that crane has pushed. jib is a plugin of Maven, and needs mvn, javac and keytool.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cleanEnv, createStorage, project, runProcess, startProcess } from '../support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-clients-'))
const certificate = join(folder, 'server.crt')

/** Address of a server and the credentials. `flag` is one of two words, for TLS or none. */
type Scene = { host: string; user: string; password: string; tls: boolean; home: string; env: Record<string, string> }
type Step = readonly [name: string, command: string, args: readonly string[], more?: { cwd?: string; env?: object }]
type Client = { name: string; program?: string; version: readonly string[]; steps(scene: Scene): Step[] }

function sh(command: string, args: readonly string[], { cwd, env }: { cwd?: string; env?: object } = {}) {
  const options = { cwd: cwd ?? folder, env: { ...cleanEnv(), ...env }, encoding: 'utf8', maxBuffer: 64 << 20 } as const
  const done = spawnSync(command, args, { ...options, timeout: 240_000 })
  return { code: done.status ?? 1, all: `${done.stdout ?? ''}${done.stderr ?? ''}`, missing: done.error !== undefined }
}

function make(command: string, ...args: string[]): void {
  const { code, all } = sh(command, args)
  assert.equal(code, 0, `${command} ${args.join(' ')}: ${all}`)
}

const clients: readonly Client[] = [
  {
    name: 'crane',
    version: ['version'],
    steps: ({ host, user, password }) => [
      ['login', 'crane', ['login', host, '-u', user, '-p', password]],
      ['push', 'crane', ['append', '-f', 'layer.tar', '-t', `${host}/acme/crane:v1`]],
      ['move a tag', 'crane', ['tag', `${host}/acme/crane:v1`, 'v2']],
      ['list tags', 'crane', ['ls', `${host}/acme/crane`]],
      ['copy', 'crane', ['copy', `${host}/acme/crane:v1`, `${host}/acme/team/crane:v1`]],
      ['pull', 'crane', ['export', `${host}/acme/team/crane:v1`, 'crane.tar']],
      ['catalog', 'crane', ['catalog', host]],
    ],
  },
  {
    name: 'oras',
    version: ['version'],
    steps: ({ host, user, password, tls }) => {
      // By default, this client uses no TLS for the host name localhost.
      const plain = [`--plain-http=${!tls}`]
      const ref = `${host}/acme/oras:v1`
      return [
        ['login', 'oras', ['login', ...plain, host, '-u', user, '-p', password]],
        ['push', 'oras', ['push', ...plain, ref, 'layer.tar:application/x-tar']],
        ['attach', 'oras', ['attach', ...plain, '--artifact-type', 'example/note', ref, 'note.txt:text/plain']],
        ['referrers', 'oras', ['discover', ...plain, ref]],
        ['list tags', 'oras', ['repo', 'tags', ...plain, `${host}/acme/oras`]],
        ['pull', 'oras', ['pull', ...plain, '-o', 'from-oras', ref]],
      ]
    },
  },
  {
    name: 'skopeo',
    version: ['--version'],
    steps: ({ host, user, password, tls, home }) => {
      const verify = `tls-verify=${tls}`
      const auth = ['--authfile', join(home, 'skopeo.json')]
      const policy = ['--policy', join(folder, 'policy.json')]
      const certs = tls ? ['--cert-dir', join(folder, 'certs')] : []
      const ref = `docker://${host}/acme/skopeo:v1`
      const ends = (side: string) => [
        `--${side}-${verify}`,
        ...(tls ? [`--${side}-cert-dir`, join(folder, 'certs')] : []),
      ]
      const [to, from] = [ends('dest'), ends('src')]
      return [
        ['login', 'skopeo', ['login', `--${verify}`, ...certs, ...auth, '-u', user, '-p', password, host]],
        ['push', 'skopeo', [...policy, 'copy', ...to, ...auth, 'oci:layout:v1', ref]],
        ['inspect', 'skopeo', ['inspect', `--${verify}`, ...certs, ...auth, ref]],
        ['list tags', 'skopeo', ['list-tags', `--${verify}`, ...certs, ...auth, `docker://${host}/acme/skopeo`]],
        ['copy', 'skopeo', [...policy, 'copy', ...from, ...to, ...auth, ref, ref.replace('acme/', 'acme/team/')]],
        ['pull', 'skopeo', [...policy, 'copy', ...from, ...auth, ref, `oci:${join(home, 'from-skopeo')}:v1`]],
      ]
    },
  },
  {
    name: 'regctl',
    version: ['version'],
    steps: ({ host, user, password, tls }) => [
      ['settings', 'regctl', ['registry', 'set', host, '--skip-check', '--tls', tls ? 'enabled' : 'disabled']],
      ['login', 'regctl', ['registry', 'login', host, '-u', user, '-p', password]],
      ['push', 'regctl', ['image', 'copy', 'ocidir://layout:v1', `${host}/acme/regctl:v1`]],
      ['list tags', 'regctl', ['tag', 'ls', `${host}/acme/regctl`]],
      ['inspect', 'regctl', ['manifest', 'get', `${host}/acme/regctl:v1`]],
      ['copy', 'regctl', ['image', 'copy', `${host}/acme/regctl:v1`, `${host}/acme/team/regctl:v1`]],
      ['pull', 'regctl', ['image', 'export', `${host}/acme/regctl:v1`, 'regctl.tar']],
    ],
  },
  {
    name: 'podman',
    version: ['--version'],
    steps: ({ host, user, password, tls, home }) => {
      const storage = ['--root', join(home, 'root'), '--runroot', join(home, 'run'), '--storage-driver', 'vfs']
      const verify = [`--tls-verify=${tls}`, ...(tls ? ['--cert-dir', join(folder, 'certs')] : [])]
      const auth = ['--authfile', join(home, 'podman.json')]
      const ref = `${host}/acme/podman:v1`
      const podman = (...args: string[]) => [...storage, ...args]
      return [
        ['login', 'podman', podman('login', ...verify, ...auth, '-u', user, '-p', password, host)],
        ['make', 'podman', podman('import', 'layer.tar', ref)],
        ['push', 'podman', podman('push', ...verify, ...auth, ref)],
        ['pull', 'podman', podman('pull', ...verify, ...auth, ref)],
      ]
    },
  },
  {
    name: 'helm',
    version: ['version', '--short'],
    steps: ({ host, user, password, tls }) => {
      const [plain, ca] = [tls ? [] : ['--plain-http'], tls ? ['--ca-file', certificate] : []]
      return [
        ['login', 'helm', ['registry', 'login', ...plain, ...ca, host, '-u', user, '-p', password]],
        ['push', 'helm', ['push', ...plain, ...ca, 'chart-0.1.0.tgz', `oci://${host}/acme/charts`]],
        ['show', 'helm', ['show', 'chart', ...plain, ...ca, `oci://${host}/acme/charts/chart`]],
        ['pull', 'helm', ['pull', ...plain, ...ca, '-d', 'from-helm', `oci://${host}/acme/charts/chart`]],
      ]
    },
  },
  {
    name: 'ko',
    version: ['version'],
    steps: ({ host, user, password, env }) => [
      ['login', 'ko', ['login', host, '-u', user, '-p', password]],
      [
        'build and push',
        'ko',
        ['build', '--bare', '--platform=linux/amd64', '--sbom=none', '.'],
        {
          cwd: join(folder, 'program'),
          env: { ...env, KO_DOCKER_REPO: `${host}/acme/ko`, KO_DEFAULTBASEIMAGE: `${host}/acme/crane:v1` },
        },
      ],
    ],
  },
  {
    name: 'cosign',
    version: ['version'],
    steps: ({ host, user, password, home }) => {
      const [key, ref] = [join(home, 'cosign.key'), `${host}/acme/crane:v1`]
      const config = join(home, 'signing.json')
      const loose = ['--allow-http-registry', '--allow-insecure-registry']
      return [
        ['login', 'cosign', ['login', host, '-u', user, '-p', password]],
        ['make a key', 'cosign', ['generate-key-pair', '--output-key-prefix', join(home, 'cosign')]],
        // Signs without a public transparency log, which would need the internet.
        ['settings', 'cosign', ['signing-config', 'create', '--out', config]],
        ['sign', 'cosign', ['sign', '--yes', '--signing-config', config, '--key', key, ...loose, ref]],
        ['verify', 'cosign', ['verify', '--insecure-ignore-tlog', '--key', key.replace('.key', '.pub'), ...loose, ref]],
      ]
    },
  },
  // Its command asks a daemon, and only the version where there is one.
  { name: 'docker', version: ['info', '-f', '{{.ServerVersion}}'], steps: dockerSteps },
  { name: 'jib', program: 'mvn', version: ['--version'], steps: jibSteps },
]

function dockerSteps({ host, user, password }: Scene): Step[] {
  const ref = `${host}/acme/docker:v1`
  return [
    ['login', 'docker', ['login', '-u', user, '-p', password, host]],
    ['make', 'docker', ['import', 'layer.tar', ref]],
    ['push', 'docker', ['push', ref]],
    ['pull', 'docker', ['pull', ref]],
  ]
}

const jib = '3.4.4'

function jibSteps({ host, user, password, tls, home, env }: Scene): Step[] {
  const trust = join(home, 'trust.p12')
  const store = ['-storetype', 'PKCS12', '-keystore', trust, '-storepass', 'changeit']
  const settings = [
    `-Djib.from.image=scratch`,
    `-Djib.to.image=${host}/acme/jib:v1`,
    `-Djib.to.auth.username=${user}`,
    `-Djib.to.auth.password=${password}`,
    ...(tls ? [] : ['-Djib.allowInsecureRegistries=true', '-DsendCredentialsOverHttp=true']),
  ]
  // Maven needs the downloads of an earlier run: it trusts only our certificate, so it cannot download anything now. In Maven's
  // offline mode, Jib does not push.
  const repository = [`-Dmaven.repo.local=${join(folder, 'm2')}`, '-Djib.disableUpdateChecks=true']
  const goal = `com.google.cloud.tools:jib-maven-plugin:${jib}:build`
  const build = ['--batch-mode', '--quiet', ...repository, ...settings, goal]
  const options = tls
    ? { MAVEN_OPTS: `-Djavax.net.ssl.trustStore=${trust} -Djavax.net.ssl.trustStorePassword=changeit` }
    : {}
  return [
    ['compile', 'javac', ['-d', 'target/classes', 'Main.java'], { cwd: join(folder, 'java'), env }],
    ...(tls
      ? [
          [
            'trust',
            'keytool',
            ['-importcert', '-noprompt', '-alias', 'pinfold', '-file', certificate, ...store],
          ] as const,
        ]
      : []),
    ['build and push', 'mvn', build, { cwd: join(folder, 'java'), env: { ...env, ...options } }],
  ]
}

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>program</artifactId>
  <version>1</version>
</project>
`

/** Content that all clients push. */
function prepare(): void {
  writeFileSync(join(folder, 'note.txt'), 'a note\n')
  mkdirSync(join(folder, 'certs'))
  make('tar', 'cf', 'layer.tar', 'note.txt')
  make('umoci', 'init', '--layout', 'layout')
  make('umoci', 'new', '--image', 'layout:v1')
  make('umoci', 'insert', '--image', 'layout:v1', 'note.txt', '/note.txt')
  writeFileSync(join(folder, 'policy.json'), JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }))
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'server.key']
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2']
  make('openssl', 'req', '-x509', ...key, ...name, '-out', 'server.crt')
  writeFileSync(join(folder, 'certs/ca.crt'), readFileSync(certificate))
  mkdirSync(join(folder, 'chart'))
  writeFileSync(join(folder, 'chart/Chart.yaml'), 'apiVersion: v2\nname: chart\nversion: 0.1.0\n')
  make('tar', 'czf', 'chart-0.1.0.tgz', 'chart')
  mkdirSync(join(folder, 'program'))
  mkdirSync(join(folder, 'from-helm'))
  writeFileSync(join(folder, 'program/go.mod'), 'module example.com/program\n\ngo 1.22\n')
  writeFileSync(join(folder, 'program/main.go'), 'package main\n\nfunc main() {}\n')
  mkdirSync(join(folder, 'java'))
  writeFileSync(join(folder, 'java/pom.xml'), pom)
  writeFileSync(join(folder, 'java/Main.java'), 'class Main {\n  public static void main(String[] args) {}\n}\n')
}

/** Steps that a client completed, with its own push token, or the step that failed. */
async function table(tls: boolean): Promise<Map<string, string>> {
  await using storage = await createStorage()
  const given = tls ? ['--tls-cert', certificate, '--tls-key', join(folder, 'server.key')] : []
  await using server = await startProcess(storage, { args: given, listen: '127.0.0.1:0' })
  const host = `localhost:${new URL(server.url).port}`
  const command = async (...args: string[]) => {
    const done = await runProcess([...args, ...storage.args], { env: storage.env })
    assert.equal(done.code, 0, done.stderr)
    return done.stdout
  }
  await command('orgs', 'create', 'acme')
  const cells = new Map<string, string>()
  for (const client of wanted) {
    const { name, steps } = client
    if (versionOf(client) === '') continue
    const made = await command('tokens', 'push', 'create', name, '--in', 'acme', '--push', '-o', 'json')
    const { user, password } = JSON.parse(made) as { user: string; password: string }
    const home = mkdtempSync(join(folder, `${name}-`))
    const env = {
      HOME: home,
      DOCKER_CONFIG: join(home, 'docker'),
      COSIGN_PASSWORD: '',
      GOFLAGS: '-buildvcs=false',
      GOCACHE: join(folder, 'go-cache'),
      ...(tls && { SSL_CERT_FILE: certificate }),
    }
    mkdirSync(env.DOCKER_CONFIG)
    const took: string[] = []
    let problem = ''
    for (const [step, program, args, more] of steps({ host, user, password, tls, home, env })) {
      const { code, all } = sh(program, args, { env, ...more })
      if (code === 0) took.push(step)
      else {
        problem = `fails at ${step}`
        console.log(`FAIL ${name} ${step}: ${all.replaceAll(password, '…').slice(-1500)}`)
        break
      }
    }
    cells.set(name, [took.join(', '), problem].filter(Boolean).join('; ') || 'not tried')
    console.log(`${problem ? 'FAIL' : 'ok  '} ${name} ${tls ? 'over TLS' : 'at localhost'}: ${cells.get(name)}`)
    await command('tokens', 'push', 'delete', user)
  }
  return cells
}

function versionOf({ name, program = name, version }: Client): string {
  const { code, all, missing } = sh(program, version)
  if (program !== name) return missing || code !== 0 ? '' : jib
  if (missing || code !== 0) return ''
  const said = /v?(\d+\.\d+(?:\.\d+)?)/.exec(all)?.[1]
  if (said?.split('.').length === 3) return said
  // Some programs that `go install` builds report no complete version.
  const built = sh('sh', ['-c', `go version -m "$(command -v ${program})"`]).all
  return /\smod\s+\S+\s+v(\d+\.\d+\.\d+)/.exec(built)?.[1] ?? said ?? 'as built from its module'
}

const { values } = parseArgs({ options: { only: { type: 'string' } } })
const only = values.only?.split(',')
const wanted = clients.filter(({ name }) => only?.includes(name) ?? true)
const page = join(project, 'docs/clients.md')
const before = readFileSync(page, 'utf8')

prepare()
const [plain, secured] = [await table(false), await table(true)]
const rows = clients.map((client) => {
  if (!wanted.includes(client)) return new RegExp(`^\\| ${client.name} \\|.*$`, 'm').exec(before)?.[0]
  const version = versionOf(client)
  if (version === '')
    return `| ${client.name} | not tested: ${client.name === 'docker' ? 'no Docker daemon' : 'not installed'} on the test machine | | |`
  return `| ${client.name} | ${version} | ${plain.get(client.name)} | ${secured.get(client.name)} |`
})
const head = `# Clients

See which registry clients (such as crane, Podman and Helm) work with Pinfold, and which of their commands were tested. To sign in with a
client, use a [push token](guides/push-tokens.md): its user name, and its secret as the password.

\`\`\`sh
docker login --username pt-7k3mq9xw registry.example.com
\`\`\`

Each client ran its commands twice: against \`http://localhost\` without TLS, and against a server with its [own TLS
certificate](operations/tls.md). The table lists the commands that succeeded. To repeat the test with the clients that are installed on
your machine, run \`bin/pinfold-node test/clients/table.ts\`. It also writes this page. The build tests skopeo, umoci, crane and oras for
every change.

| Client | Version | At localhost, http | Over TLS |
| --- | --- | --- | --- |
`
writeFileSync(page, `${head}${rows.join('\n')}\n`)
rmSync(folder, { recursive: true, force: true })
