import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createStorage,
  type Env,
  freeAddress,
  program,
  type Run,
  runProcess,
  startProcess,
  tokenOf,
} from '../support/process.ts'
import { digestOf, registryClient } from '../support/registry.ts'
import { copyOfOldest } from '../upgrades/release.ts'

/** `says` is the cause and `next` what to do, each found in the answer. */
export type Mistake = { title: string; shown: string; code: number; says: RegExp; next: RegExp; play(): Promise<Run> }

type Operator = (title: string, words: string, code: number, says: RegExp, next: RegExp) => Mistake
type Cli = (args: readonly string[], env?: Env) => Promise<Run>

export async function furtherMistakes({ cli, nobody, operator }: { cli: Cli; nobody: Env; operator: Operator }) {
  const strict = await startStrictPostgres()
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  const database = `postgres://pinfold:wrong@127.0.0.1:${strict.port}/pinfold`
  const mistakes: Mistake[] = [
    {
      title: 'A wrong database password',
      shown: 'PINFOLD_MASTER_KEY=… pinfold serve --database postgres://pinfold:wrong@127.0.0.1/pinfold',
      code: 78,
      says: /password authentication failed/,
      next: /check the user and the password/,
      play: () => cli(['serve', '--database', database], { PINFOLD_MASTER_KEY: 'a'.repeat(64) }),
    },
    {
      title: 'The data folder belongs to another user',
      shown: 'pinfold serve --data data',
      code: 1,
      says: /cannot be written: EACCES/,
      next: /make the user of the server its owner/,
      play: () => serveInForeignFolder(join(folder, 'data'), nobody),
    },
    operator(
      'An invalid tag name',
      'tags create acme/app:not/a/tag sha256:0',
      64,
      /not\/a\/tag is not a valid tag/,
      /for example acme\/app:1\.0/,
    ),
    { ...filled, play: () => playFullDisk(folder) },
    { ...inTheClear, play: () => playTls(folder, nobody, 'http') },
    { ...notTrusted, play: () => playTls(folder, nobody, 'https') },
    { ...wrongTls, play: () => playHttpsToHttp(nobody) },
    { ...proxied, play: () => playProxied(nobody) },
    { ...restarted, play: () => playRestart(nobody) },
    { ...upgraded, play: () => playUpgrade(cli) },
  ]
  return {
    mistakes,
    neutral: [`${folder}/`, ''] as const,
    async end() {
      strict.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** As far as PostgreSQL goes with somebody whose password is wrong. */
export async function startStrictPostgres() {
  const message = (type: string, ...fields: (string | Buffer)[]): Buffer => {
    const body = Buffer.concat(fields.map((field) => (typeof field === 'string' ? Buffer.from(`${field}\0`) : field)))
    const length = Buffer.alloc(4)
    length.writeInt32BE(body.length + 4)
    return Buffer.concat([Buffer.from(type), length, body])
  }
  const server = createServer((socket) => {
    socket.on('error', () => {})
    // It asks for the password in the clear (3), and refuses it.
    socket.once('data', () => {
      socket.write(message('R', Buffer.from([0, 0, 0, 3])))
      socket.once('data', () => {
        const fields = ['SFATAL', 'VFATAL', 'C28P01', 'Mpassword authentication failed for user "pinfold"', '']
        socket.end(message('E', ...fields))
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as { port: number }).port, close: () => void server.close() }
}

const asNobody = ['--reuid=65534', '--regid=65534', '--clear-groups']

/** Checks that root can try it as another user: by setpriv, and with readable folders above the program. */
export function mayOthersRun(): boolean {
  return process.getuid?.() !== 0 || spawnSync('setpriv', [...asNobody, program, '--version']).status === 0
}

/** Root may write anywhere, so it becomes nobody first. */
export async function serveInForeignFolder(data: string, env: Env): Promise<Run> {
  mkdirSync(data, { recursive: true })
  chmodSync(data, 0o555)
  chmodSync(join(data, '..'), 0o755)
  const args = ['serve', '--data', data, '--listen', '127.0.0.1:0']
  if (process.getuid?.() !== 0) return runProcess(args, { env })
  return runProcess([...asNobody, program, ...args], { env, command: 'setpriv' })
}

const filled: Omit<Mistake, 'play'> = {
  title: 'The disk of the data folder is full',
  shown: 'curl --data-binary @layer.tar.gz …/blobs/uploads/?digest=…    # then what was there before is asked for',
  code: 0,
  says: /the blob storage of the server is full/,
  next: /its operator must free or add space[^\n]*\n200 OK/,
}

/** On a small disk of its own: what does not fit is refused, and what was there stays. */
async function playFullDisk(folder: string): Promise<Run> {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', disk], { encoding: 'utf8' })
  if (mounted.status !== 0) throw new Error(`no disk of its own: ${mounted.stderr}`)
  try {
    const at = { args: ['--data', join(disk, 'data')], env: {} }
    await using server = await startProcess(at)
    await cli({}, 'orgs', 'create', 'acme', ...at.args)
    const client = registryClient(server.url, await tokenOf(at, ['--audience', 'registry']))
    const kept = await client.pushBlob('acme/app', 'there before')
    const layer = randomBytes(32 * 1024 * 1024)
    const begun = await client.ok(202, 'POST', 'acme/app/blobs/uploads/')
    const where = `${new URL(String(begun.headers.location), server.url).pathname}?digest=${digestOf(layer)}`
    const refused = await client.call('PUT', where, { body: layer })
    const there = await client.call('GET', `acme/app/blobs/${kept.digest}`)
    const lines = [`${refused.status} ${refused.bytes}`, `${there.status} OK, as it was`]
    return { code: 0, stdout: lines.join('\n'), stderr: '' }
  } finally {
    spawnSync('umount', [disk])
  }
}

const inTheClear: Omit<Mistake, 'play'> = {
  title: 'HTTP to a server with TLS',
  shown: 'PINFOLD_API=http://127.0.0.1:8443 PINFOLD_TOKEN=… pinfold images list',
  code: 1,
  says: /this port requires TLS/,
  next: /use https:\/\/ instead/,
}

const notTrusted: Omit<Mistake, 'play'> = {
  title: 'A self-signed certificate',
  shown: 'PINFOLD_API=https://127.0.0.1:8443 PINFOLD_TOKEN=… pinfold images list',
  code: 69,
  says: /this machine does not trust its certificate/,
  next: /NODE_EXTRA_CA_CERTS/,
}

/** A server with a certificate of its own, and a command that does not know it. */
async function playTls(folder: string, env: Env, scheme: string): Promise<Run> {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key]
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2']
  const made = spawnSync('openssl', ['req', '-x509', ...kind, ...name, '-out', certificate], { encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`)
  await using storage = await createStorage()
  const at = { args: ['--data', storage.data], env: {} }
  await using server = await startProcess(at, { args: ['--tls-cert', certificate, '--tls-key', key] })
  const api = `${scheme}://${new URL(server.url).host}`
  return await runProcess(['images', 'list'], { env: { ...env, PINFOLD_API: api, PINFOLD_TOKEN: await tokenOf(at) } })
}

const wrongTls: Omit<Mistake, 'play'> = {
  title: 'HTTPS to a server without TLS',
  shown: 'PINFOLD_API=https://127.0.0.1:8443 PINFOLD_TOKEN=… pinfold images list',
  code: 69,
  says: /does not use TLS/,
  next: /http:\/\//,
}

async function playHttpsToHttp(env: Env): Promise<Run> {
  await using storage = await createStorage()
  const at = { args: ['--data', storage.data], env: {} }
  await using server = await startProcess(at)
  const api = `https://${new URL(server.url).host}`
  return await runProcess(['images', 'list'], { env: { ...env, PINFOLD_API: api, PINFOLD_TOKEN: await tokenOf(at) } })
}

const proxied: Omit<Mistake, 'play'> = {
  title: 'A proxy, and no URL in the settings',
  shown: 'docker pull registry.example.com/acme/app    # and the log of the server',
  code: 0,
  says: /clients use an unknown host name/,
  next: /"setting":"PINFOLD_URL"/,
}

/** Log of the server when docker asks it under the name of the proxy. */
async function playProxied(env: Env): Promise<Run> {
  await using storage = await createStorage()
  await using server = await startProcess(
    { args: ['--data', storage.data], env },
    { args: ['--listen', '127.0.0.1:0'] },
  )
  const client = registryClient(server.url, undefined)
  await client.call('GET', '', { headers: { host: 'registry.example.com' } })
  server.kill('SIGTERM')
  await server.exited
  const line = server.output.stderr.split('\n').find((one) => one.includes('clients use an unknown host name')) ?? ''
  const { message, host, setting } = JSON.parse(line || '{}') as Record<string, string>
  return { code: 0, stdout: JSON.stringify({ message, host, setting }), stderr: '' }
}

const restarted: Omit<Mistake, 'play'> = {
  title: 'The server restarts during a push',
  shown: 'curl -X PATCH --data-binary @half …/blobs/uploads/UID    # before, while and after it was away',
  code: 0,
  says: /ECONNREFUSED/,
  next: /204, Range: 0-9\n201 Created/,
}

/** A layer whose first half came before the restart goes on with its second one. */
async function playRestart(env: Env): Promise<Run> {
  await using storage = await createStorage()
  const listen = new URL(`http://${await freeAddress()}`).host
  const at = { args: ['--data', storage.data], env }
  const [first, second] = ['first half', 'second one']
  const lines: string[] = []
  let where = ''
  let token = ''
  {
    await using server = await startProcess(at, { listen })
    await cli(env, 'orgs', 'create', 'acme', '--data', storage.data)
    token = await tokenOf(at, ['--audience', 'registry'])
    const client = registryClient(server.url, token)
    const begun = await client.ok(202, 'POST', 'acme/app/blobs/uploads/')
    where = new URL(String(begun.headers.location), server.url).pathname
    await client.ok(202, 'PATCH', where, { body: first, headers: { 'content-range': '0-9' } })
    lines.push('202 Accepted, Range: 0-9')
    server.kill('SIGTERM')
    await server.exited
  }
  const away = registryClient(`http://${listen}`, token)
  await away.call('GET', where).catch(({ code }: NodeJS.ErrnoException) => lines.push(String(code)))
  await using again = await startProcess(at, { listen })
  const client = registryClient(again.url, token)
  const there = await client.ok(204, 'GET', where)
  lines.push(`${there.status}, Range: ${there.headers.range}`)
  const digest = digestOf(first + second)
  const done = await client.call('PUT', `${where}?digest=${digest}`, { body: second })
  lines.push(done.status === 201 ? '201 Created' : `${done.status} ${done.bytes}`)
  return { code: 0, stdout: lines.join('\n'), stderr: '' }
}

const cli = (env: Env, ...args: string[]) => runProcess(args, { env })

const upgraded: Omit<Mistake, 'play'> = {
  title: 'The data folder of the oldest version',
  shown: 'pinfold migrate --data data; pinfold repos list --data data -o terse',
  code: 0,
  says: /the database is up to date/,
  next: /acme\/payments\/ledger/,
}

/** Old data is brought up to this version, and is there. */
async function playUpgrade(here: Cli): Promise<Run> {
  await using copy = await copyOfOldest()
  const migrated = await here(['migrate', ...copy.args], copy.env)
  await using _server = await startProcess(copy)
  const listed = await here(['repos', 'list', ...copy.args, '-o', 'terse'], copy.env)
  return { ...listed, stdout: migrated.stdout + listed.stdout, stderr: migrated.stderr + listed.stderr }
}
