// A bundle copied by oras to a server without internet access. Both servers have the same findings afterwards.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { pushLayers } from '../support/images.ts'
import { osv, startMirror } from '../support/mirror.ts'
import type { Json } from '../support/pinfold.ts'
import {
  cleanEnv,
  createStorage,
  type Env,
  runProcess,
  startProcess,
  type TestStorage,
  tokenOf,
} from '../support/process.ts'
import { registryClient } from '../support/registry.ts'
import { apkLayer, pythonPackage } from '../support/scanning.ts'
import { zipOf } from '../support/zip.ts'

const oras = (args: readonly string[], env: Env) =>
  spawnSync('oras', args, { env: { ...cleanEnv(), ...env }, encoding: 'utf8' })
const hasOras = spawnSync('oras', ['version']).status === 0

const secdb = JSON.stringify({
  packages: [
    { pkg: { name: 'openssl', secfixes: { '3.0.8-r0': ['CVE-2022-4203'], '3.1.4-r5': ['CVE-2026-1', 'CVE-2026-2'] } } },
    { pkg: { name: 'zlib', secfixes: { '9-r0': ['CVE-2026-3'], '0': ['CVE-2022-1'] } } },
  ],
})
const sources = ['osv/PyPI', 'secdb/v3.19/main', 'secdb/v3.19/community'].flatMap((name) => ['--source', name])
const layers = [
  apkLayer('alpine', '3.19.1', ['libssl3 3.1.4-r2 openssl', 'zlib 1-r0', 'musl 1-r0']),
  pythonPackage('flask', '1.0'),
]

/**
 * Starts a server with an organization, a function that pushes to it, and one that returns the findings of an image once nothing
 * waits.
 */
async function start(storage: TestStorage, env: Env = {}) {
  const server = await startProcess(storage, { env })
  const host = new URL(server.url).host
  const token = await tokenOf(storage, ['--audience', host])
  const headers = { authorization: `Bearer ${await tokenOf(storage)}`, 'content-type': 'application/json' }
  const api = async (path: string, body?: Json): Promise<Json> => {
    const init = body ? { method: 'POST', body: JSON.stringify(body) } : {}
    const answer = await fetch(server.url + path, { ...init, headers })
    assert.equal(answer.status, 200, path)
    return (await answer.json()) as Json
  }
  await api('/iam/v2/groups', { name: 'acme' })
  const found = async (digest: string): Promise<Json> => {
    const repo = (await api('/registry/v2/repos')).repos.find(({ name }: Json) => name === 'app')
    for (let i = 0; ; i++) {
      const { findings, gaps } = await api(`/registry/v2/repos/${repo.uid}/digests/${digest}/findings`)
      if (findings.length > 0) return { gaps, findings: findings.map((one: Json) => ({ ...one, foundTime: '' })) }
      assert.ok(i < 600, JSON.stringify(gaps))
      await sleep(100)
    }
  }
  const push = async () => (await pushLayers(registryClient(server.url, token), 'acme/app', layers, 'latest')).digest
  return { server, host, token, push, found }
}

test('a server without internet access finds the same with a bundle copied by oras', { skip: !hasOras }, async () => {
  await using online = await createStorage()
  await using inside = await createStorage()
  const mirror = await startMirror({
    'osv/PyPI/all.zip': { body: zipOf({ 'PYSEC-1.json': osv('PYSEC-1'), 'PYSEC-2.json': osv('PYSEC-2', '0.1') }) },
    'secdb/v3.19/main.json': { body: secdb },
    'secdb/v3.19/community.json': { body: JSON.stringify({ packages: [] }) },
  })
  const first = await start(online)
  await using _first = first.server
  const closed = {
    NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, '../support/loopback-only.mjs'))}`,
  }
  const second = await start(inside, closed)
  await using _second = second.server

  const docker = join(online.data, 'docker')
  mkdirSync(docker)
  const auths = Object.fromEntries(
    [first, second].map(({ host, token }) => [host, { auth: Buffer.from(`_token:${token}`).toString('base64') }]),
  )
  writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths }))
  const env = { DOCKER_CONFIG: docker }
  const [from, to] = [first, second].map(({ host }) => `${host}/acme/vulnerabilities:latest`)

  const synced = await runProcess(
    ['vulnerabilities', 'sync', ...online.args, '--mirror', mirror.url, ...sources],
    online,
  )
  assert.deepEqual([synced.code, synced.stderr], [0, ''])
  const packed = await runProcess(['vulnerabilities', 'pack', from!, '--mirror', mirror.url, ...sources], { env })
  assert.deepEqual([packed.code, packed.stderr], [0, ''])
  await mirror[Symbol.asyncDispose]()

  const copied = oras(['cp', '--from-plain-http', '--to-plain-http', from!, to!], env)
  assert.equal(copied.status, 0, copied.stderr)
  const read = await runProcess(['vulnerabilities', 'sync', ...inside.args, '--from', to!], {
    env: { ...inside.env, ...env, ...closed },
  })
  assert.deepEqual([read.code, read.stderr], [0, ''])

  const digest = await first.push()
  assert.equal(await second.push(), digest)
  const expected = await first.found(digest)
  assert.deepEqual(expected.findings.map(({ vulnerabilities: [id] }: Json) => id).sort(), [
    'CVE-2026-1',
    'CVE-2026-2',
    'CVE-2026-3',
    'CVE-PYSEC-1',
  ])
  assert.deepEqual(await second.found(digest), expected)

  // A source that cannot be read keeps its records.
  const failed = await runProcess(['vulnerabilities', 'sync', ...inside.args, '--source', 'osv/PyPI'], {
    env: { ...inside.env, ...closed },
  })
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /^EGRESS \S+$/m, 'the guard does not see what goes out')
  assert.deepEqual((await second.found(digest)).findings, expected.findings)
  assert.doesNotMatch(second.server.output.stderr, /EGRESS/)
})
