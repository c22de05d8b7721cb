// Signatures of cosign through mirrors of all modes, run by hand. Cosign, which has to be on the PATH, signs an image at one
// server, in bundles and in tags. It verifies the image through repositories of another server that follow it, and once
// more when the upstream is gone: bin/pinfold-node test/clients/mirrored-signatures.ts
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, clientOf, type Json } from '../support/pinfold.ts'
import { cleanEnv, createStorage, startProcess, tokenOf } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-cosign-'))
/** Longest time between an image and its signature. */
const patienceMs = 120_000

type Done = { code: number; all: string }

function cosign(...args: readonly string[]): Done {
  const env = { COSIGN_PASSWORD: '', HOME: folder, DOCKER_CONFIG: join(folder, 'docker') }
  const done = spawnSync('cosign', args, { cwd: folder, env: { ...cleanEnv(), ...env }, encoding: 'utf8' })
  if (done.error) throw done.error
  return { code: done.status ?? 1, all: done.stdout + done.stderr }
}

function done({ code, all }: Done): string {
  if (code !== 0) throw new Error(all)
  return all
}

/** Server with the organization `acme`, and its addresses. */
async function open(env: Record<string, string>) {
  await using opening = new AsyncDisposableStack()
  const storage = opening.use(await createStorage())
  const server = opening.use(await startProcess(storage, { env: { PINFOLD_LOG_LEVEL: 'error', ...env } }))
  const api = clientOf(server.url, await tokenOf(storage))
  const token = await tokenOf(storage, ['--audience', 'registry'])
  const org = await made(api, '/iam/v2/groups/', { name: 'acme' })
  const opened = opening.move()
  return {
    ...{ server, api, token, org, url: server.url, host: new URL(server.url).host },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

async function made(api: Client, path: string, body: Json): Promise<string> {
  const answer = await api.post(path, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.uid
}

/** Verifies a signature, repeatedly until that succeeds or the time is over. Returns the last result. */
async function verify(image: string, key: string, patience = 0): Promise<Done> {
  const args = ['--key', key, '--insecure-ignore-tlog=true', '--allow-http-registry', '--allow-insecure-registry']
  for (const end = Date.now() + patience; ; await sleep(500)) {
    const answer = cosign('verify', ...args, image)
    if (answer.code === 0 || Date.now() >= end) return answer
  }
}

const kinds = { bundle: ['--new-bundle-format=true'], 'tags of before': ['--new-bundle-format=false'] }
const modes = { watch: 'MODE_WATCH', 'on-demand': 'MODE_ON_DEMAND', full: 'MODE_FULL' }
let failed = 0
try {
  const version = /GitVersion:\s*(\S+)/.exec(done(cosign('version')))?.[1] ?? '?'
  await using there = await open({})
  await using here = await open({ PINFOLD_ALLOW_INSECURE_UPSTREAMS: 'on', PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on' })
  const auths = [there, here].map(({ host, token }) => {
    return [host, { auth: Buffer.from(`_token:${token}`).toString('base64') }]
  })
  mkdirSync(join(folder, 'docker'))
  writeFileSync(join(folder, 'docker/config.json'), JSON.stringify({ auths: Object.fromEntries(auths) }))
  for (const name of ['cosign', 'other']) done(cosign('generate-key-pair', '--output-key-prefix', name))

  const registry = registryClient(there.url, there.token)
  const signed: Record<string, string> = {}
  const signing = ['--key', 'cosign.key', '--yes', '--tlog-upload=false', '--allow-http-registry']
  // From version 3 on, cosign reads the services for signing from a file, unless an option disables this.
  const told = /--use-signing-config/.test(cosign('sign', '--help').all) ? ['--use-signing-config=false'] : []
  for (const [kind, args] of Object.entries(kinds)) {
    const name = `acme/${kind.split(' ')[0]}`
    const { digest } = await registry.pushImage(name, 'v1')
    done(cosign('sign', ...signing, ...told, ...args, `${there.host}/${name}@${digest}`))
    done(await verify(`${there.host}/${name}:v1`, 'cosign.pub'))
    signed[kind] = digest
  }

  const account = { username: '_token', password: there.token }
  const upstreamUid = await made(here.api, `/registry/v2/upstreams/${here.org}`, {
    ...{ name: 'there', url: there.url, prefix: 'acme' },
    ...account,
  })
  const images: { kind: string; mode: string; image: string; cells: string[] }[] = []
  for (const kind of Object.keys(kinds)) {
    for (const [mode, number] of Object.entries(modes)) {
      const path = kind.split(' ')[0]!
      const repo = await made(here.api, `/registry/v2/repos/${here.org}`, { name: `${path}-${mode}` })
      await made(here.api, `/registry/v2/repos/${repo}/follow`, { upstreamUid, path, mode: number, tags: ['v1'] })
      images.push({ kind, mode, image: `${here.host}/acme/${path}-${mode}:v1`, cells: [] })
    }
  }
  const look = async (patience: number): Promise<void> => {
    for (const { kind, mode, image, cells } of images) {
      const { code, all } = await verify(image, 'cosign.pub', mode === 'watch' ? 0 : patience)
      const isVerified = code === 0 && all.includes(signed[kind]!)
      cells.push(isVerified ? 'verified' : 'no')
      if (isVerified !== (mode !== 'watch')) {
        failed++
        console.error(`${mode}, ${kind}: ${all.slice(-2000)}`)
      }
      const wrong = await verify(image, 'other.pub')
      if (wrong.code === 0) failed++
    }
  }
  await look(patienceMs)
  there.server.kill('SIGKILL')
  await there.server.exited
  await look(0)
  console.log(`cosign ${version}`)
  console.log('| Signature | Mode | Through the mirror | With the upstream gone |\n| --- | --- | --- | --- |')
  for (const { kind, mode, cells } of images) console.log(`| ${kind} | ${mode} | ${cells.join(' | ')} |`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
