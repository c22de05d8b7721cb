// Check of the container image. It is built twice, pushed to a real server, pulled from it, and started from its unpacked files.
// It runs as an unprivileged user with a read-only root. The arm64 image must have the same files. Needs root for the mounts,
// crane on the PATH, and the tools of `npm run image`.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanEnv, createStorage, freeAddress, project, startProcess, tokenOf } from '../support/process.ts'

let passed = 0
let failed = 0

function expect(name: string, holds: boolean, seen: unknown = ''): void {
  if (holds) passed++
  else failed++
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${name}${holds ? '' : `\n${String(seen)}`}`)
}

type Descriptor = { mediaType: string; digest: string; artifactType?: string; platform?: { architecture: string } }
type Document = { manifests?: Descriptor[]; config?: Descriptor; layers?: Descriptor[] }

const work = mkdtempSync(join(tmpdir(), 'pinfold-image-test-'))
const layout = join(work, 'first')
const userId = 65_532

function build(name: string): string {
  const script = join(project, 'scripts/image/build.ts')
  return execFileSync(process.execPath, [script, '--out', join(work, name)], { encoding: 'utf8', env: cleanEnv() })
}

const blobOf = (digest: string) => readFileSync(join(layout, 'blobs/sha256', digest.slice('sha256:'.length)))

/** Address and token of the registry, in the form that clients need. */
function registryOf(url: string, repo: string, token: string) {
  const ask = (method: string, path: string, init: RequestInit = {}) =>
    fetch(new URL(path, url), { method, ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } })
  const pushBlob = async (digest: string): Promise<void> => {
    const begun = await ask('POST', `/v2/${repo}/blobs/uploads/`)
    const at = new URL(begun.headers.get('location')!, url)
    at.searchParams.set('digest', digest)
    const headers = { 'content-type': 'application/octet-stream' }
    const { status } = await ask('PUT', at.href, { body: new Uint8Array(blobOf(digest)), headers })
    if (status !== 201) throw new Error(`the blob ${digest} was answered with ${status}`)
  }
  const push = async ({ digest, mediaType }: Descriptor, reference = digest): Promise<void> => {
    const document = JSON.parse(blobOf(digest).toString()) as Document
    for (const one of document.manifests ?? []) await push(one)
    for (const one of [...(document.config ? [document.config] : []), ...(document.layers ?? [])]) {
      await pushBlob(one.digest)
    }
    const body = new Uint8Array(blobOf(digest))
    const answer = await ask('PUT', `/v2/${repo}/manifests/${reference}`, {
      body,
      headers: { 'content-type': mediaType },
    })
    if (answer.status !== 201)
      throw new Error(`${mediaType} was answered with ${answer.status}: ${await answer.text()}`)
  }
  return { ask, push }
}

/** Files of an image, read from the registry. */
async function unpack(registry: ReturnType<typeof registryOf>, repo: string, digest: string): Promise<string> {
  const root = join(work, digest.slice('sha256:'.length, 20))
  mkdirSync(root)
  const manifest = (await (await registry.ask('GET', `/v2/${repo}/manifests/${digest}`)).json()) as Document
  for (const layer of manifest.layers!) {
    const content = Buffer.from(await (await registry.ask('GET', `/v2/${repo}/blobs/${layer.digest}`)).arrayBuffer())
    const hash = createHash('sha256').update(content).digest('hex')
    if (layer.digest !== `sha256:${hash}`) throw new Error(`the layer ${layer.digest} came back as ${hash}`)
    execFileSync('tar', ['-xz', '-C', root], { input: content })
  }
  return root
}

/** All files below a folder, each with its path and its type. */
function filesOf(root: string, below = ''): Map<string, { mode: number; content: Buffer | undefined }> {
  const files = new Map<string, { mode: number; content: Buffer | undefined }>()
  for (const name of readdirSync(join(root, below))) {
    const path = join(below, name)
    const stat = lstatSync(join(root, path))
    if (stat.isDirectory()) for (const [found, file] of filesOf(root, path)) files.set(found, file)
    else
      files.set(path, { mode: stat.mode & 0o7777, content: stat.isFile() ? readFileSync(join(root, path)) : undefined })
  }
  return files
}

/** Runs a command in the image. The root is read-only, only the data folder is writable, and the process has no privileges. */
const inside = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind "$2" "$1/var/lib/pinfold"
mount --bind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -o remount,bind,ro "$1"
root=$1
shift 2
exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid chroot --userspec=${userId}:${userId} --groups= "$root" "$@"`

async function tryRunning(root: string, config: { Entrypoint: string[]; Cmd: string[]; Env: string[]; User: string }) {
  const data = join(work, 'data')
  mkdirSync(data)
  chownSync(data, userId, userId)
  const listen = await freeAddress()
  const env = {
    ...Object.fromEntries(config.Env.map((line) => line.split(/=(.*)/).slice(0, 2))),
    PINFOLD_LISTEN: listen,
    // Files that a command in the image writes for clients outside of the image.
    DOCKER_CONFIG: '/var/lib/pinfold/docker',
  }
  const argumentsOf = (args: string[]) => ['--mount', 'sh', '-c', inside, 'sh', root, data, ...args]
  const run = (args: string[]) =>
    spawnSync('unshare', argumentsOf(args), {
      env: { ...env, PATH: process.env.PATH! },
      encoding: 'utf8',
      timeout: 300_000,
    })
  const pinfold = (...args: string[]) => run([...config.Entrypoint, ...args])

  expect('the image names a user without rights', config.User === `${userId}:${userId}`, config.User)
  const probe = `const fs = require('node:fs'); let at = ''
for (const path of ['/x', '/opt/pinfold/x', '/tmp/x', '/usr/local/bin/x']) { try { fs.writeFileSync(path, ''); at += path } catch {} }
console.log(JSON.stringify({ at, uid: process.getuid(), status: /CapEff:\\s*(\\w+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1] }))`
  const probed = run(['/usr/local/bin/node', '-e', probe])
  const wanted = JSON.stringify({ at: '', uid: userId, status: '0000000000000000' })
  expect(
    'nothing can be written but the data folder, and there are no capabilities',
    probed.stdout.trim() === wanted,
    probed.stdout + probed.stderr,
  )

  const server = spawn('unshare', argumentsOf([...config.Entrypoint, ...config.Cmd]), {
    env: { ...env, PATH: process.env.PATH! },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [server.stdout, server.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const exited = new Promise<number | null>((resolve) => server.once('exit', resolve))
  for (let left = 3000; left > 0 && !output.includes('ready http') && server.exitCode === null; left--) await sleep(100)
  expect('the server starts from the files of the image', output.includes(`ready http://${listen}`), output)
  const healthy = pinfold('health')
  expect('the health check says that it is ready', healthy.status === 0, healthy.stderr)

  // Runs the first commands of the README. The clients run outside of the image.
  const made = pinfold('orgs', 'create', 'acme', '--configure-docker')
  expect(
    'an organization is made, and clients are signed in, by a command in the image',
    made.status === 0,
    made.stderr,
  )
  const crane = (...args: string[]) =>
    spawnSync('crane', args, { env: { ...cleanEnv(), DOCKER_CONFIG: join(data, 'docker') } })
  const pushes = ['README.md', 'LICENSE'].map((file) => {
    const layer = join(work, `${file}.tar`)
    execFileSync('tar', ['-cf', layer, '-C', project, file])
    return crane('append', '-f', layer, '-t', `${listen}/acme/app:stable`)
  })
  expect(
    'crane pushes twice',
    pushes.every(({ status }) => status === 0),
    pushes.map(({ stderr }) => stderr).join(),
  )
  const digests = pushes.map(({ stdout }) => String(stdout).trim().split('@')[1])
  const history = pinfold('tags', 'history', 'acme/app:stable')
  const moves = history.stdout.split('\n').map((line) => line.split(/ {2,}/))
  expect(
    'the history of the tag has both, with who pushed',
    ['moved', 'created'].every((event, i) => {
      const [, what, digest, by] = moves[i + 1] ?? []
      return what === event && digest === digests[1 - i] && by?.startsWith('oci pinfold on ')
    }),
    history.stdout + history.stderr,
  )
  const first = crane('export', `${listen}/acme/app@${digests[0]}`, '-')
  const files = spawnSync('tar', ['-t'], { input: first.stdout, encoding: 'utf8' }).stdout
  expect('what it was before can still be pulled', files === 'README.md\n', files + first.stderr)

  server.kill('SIGTERM')
  expect('it ends with 0 when it is asked to', (await exited) === 0, output)
}

/** Checks that each library that a file needs is in the image, and that all programs are for the image's processor. */
function checkPrograms(name: string, root: string, machine: RegExp): void {
  const files = filesOf(root)
  const libraries = new Set([...files.keys()].map((path) => path.slice(path.lastIndexOf('/') + 1)))
  const problems: string[] = []
  let programs = 0
  for (const [path, { content }] of files) {
    if (content?.subarray(0, 4).toString('latin1') !== '\x7fELF') continue
    programs++
    const said = execFileSync('readelf', ['-h', '-d', '-l', join(root, path)], {
      encoding: 'utf8',
      maxBuffer: 64 << 20,
    })
    if (!machine.test(said)) problems.push(`${path} is for another processor`)
    for (const [, needed] of said.matchAll(/\(NEEDED\).*\[(.*)\]/g)) {
      if (!libraries.has(needed!)) problems.push(`${path} needs ${needed}`)
    }
    const interpreter = /interpreter: (.*)\]/.exec(said)?.[1]
    if (interpreter && !existsSync(join(root, interpreter)) && !files.has(interpreter.slice(1))) {
      problems.push(`${path} is run by ${interpreter}`)
    }
  }
  expect(`${name}: ${programs} programs and libraries fit`, problems.length === 0 && programs > 5, problems.join('\n'))
}

function compare(amd64: string, arm64: string): void {
  const [one, other] = [filesOf(amd64), filesOf(arm64)]
  const general = (path: string) =>
    path
      .replace('x86_64-linux-gnu', 'TRIPLE')
      .replace('aarch64-linux-gnu', 'TRIPLE')
      .replace(/^lib(?:64)?\/ld-linux-.*/, 'LOADER')
      .replace(/ld-linux-(?:x86-64|aarch64)\.so\.\d/, 'LOADER')
  const isLibrary = (path: string) => path.includes('TRIPLE') || path === 'LOADER' || path === 'usr/local/bin/node'
  const others = new Map([...other].map(([path, file]) => [general(path), file]))
  const problems: string[] = []
  for (const [path, file] of one) {
    const name = general(path)
    const found = others.get(name)
    // Library for vector functions, which Debian 12 has only for this processor.
    if (!found && !/libmvec/.test(name)) problems.push(`${path} is missing`)
    if (!found) continue
    others.delete(name)
    if (found.mode !== file.mode) problems.push(`${path} has another mode`)
    const same = file.content && found.content ? file.content.equals(found.content) : file.content === found.content
    if (isLibrary(name) ? same && file.content !== undefined : !same)
      problems.push(`${path} ${same ? 'is the same' : 'differs'}`)
  }
  problems.push(...[...others.keys()].map((path) => `${path} is only in arm64`))
  expect(`arm64 has the ${one.size} files of amd64`, problems.length === 0, problems.slice(0, 20).join('\n'))
}

try {
  const said = [build('first'), build('second')]
  expect('the same input makes the same digests', said[0] === said[1], said.join('\n'))
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  const operator = await tokenOf(storage)
  const headers = { authorization: `Bearer ${operator}` }
  await fetch(`${server.url}/iam/v2/groups/`, { method: 'POST', headers, body: '{"name":"tools"}' })
  const repo = 'tools/pinfold'
  const registry = registryOf(server.url, repo, await tokenOf(storage, ['--audience', 'registry']))
  const { manifests: [index, ...attached] = [] } = JSON.parse(
    readFileSync(join(layout, 'index.json'), 'utf8'),
  ) as Document
  await registry.push(index!, 'latest')
  for (const one of attached) await registry.push(one)
  const pushed = (await (await registry.ask('GET', `/v2/${repo}/manifests/latest`)).json()) as Document
  const roots: Record<string, string> = {}
  for (const { digest, platform } of pushed.manifests!) {
    const referrers = (await (await registry.ask('GET', `/v2/${repo}/referrers/${digest}`)).json()) as Document
    const kinds = referrers
      .manifests!.map(({ artifactType }) => artifactType)
      .sort()
      .join()
    const name = platform!.architecture
    expect(`${name} has an SBOM and provenance`, kinds === 'application/spdx+json,application/vnd.in-toto+json', kinds)
    roots[name] = await unpack(registry, repo, digest)
  }
  checkPrograms('amd64', roots.amd64!, /Machine:\s+Advanced Micro Devices X86-64/)
  checkPrograms('arm64', roots.arm64!, /Machine:\s+AArch64/)
  compare(roots.amd64!, roots.arm64!)
  const amd64 = pushed.manifests!.find(({ platform }) => platform!.architecture === 'amd64')!
  const { config } = JSON.parse(blobOf(amd64.digest).toString()) as Document
  await tryRunning(roots.amd64!, JSON.parse(blobOf(config!.digest).toString()).config)
} finally {
  rmSync(work, { recursive: true, force: true })
}
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
