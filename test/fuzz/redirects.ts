// Work of a server for a large pull that it sends to the bucket. Skopeo, crane and oras pull an image with redirects and without.
// The program counts the bytes that pass through the server, and compares the results. By hand: bin/pinfold-node
// test/fuzz/redirects.ts --mebibytes 1024 --pulls 2000, with versitygw and the three clients on the PATH; missing ones are left
// out. With --check it fails above the bounds.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { noBucket, startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { cleanEnv, createStorage, freeAddress, startProcess, tokenOf } from '../support/process.ts'
import { imageOf, registryClient, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    mebibytes: { type: 'string', default: '1024' },
    /** Number of requests for the blob alone, to measure the cost of one. */
    pulls: { type: 'string', default: '2000' },
    check: { type: 'boolean', default: false },
  },
})
const [mebibytes, pulls] = [Number(values.mebibytes), Number(values.pulls)]
if (noBucket) throw new Error(noBucket)
const folder = mkdtempSync(join(tmpdir(), 'pinfold-redirects-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

/** Proxy that counts the bytes that are sent to clients. */
async function startCounter() {
  let to = ''
  let bytes = 0
  const server = createServer((socket) => {
    const [host, port] = to.split(':')
    const on = connect(Number(port), host)
    on.on('data', (chunk) => {
      bytes += chunk.length
    })
    for (const one of [socket, on]) one.on('error', () => one.destroy())
    socket.pipe(on)
    on.pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead: (address: string) => {
      to = address
    },
    take(): number {
      const all = bytes
      bytes = 0
      return all
    },
    close: () => server.close(),
  }
}

/** The content is large, so it is not held in memory. */
async function makeLayer() {
  const file = join(folder, 'layer')
  const hash = createHash('sha256')
  const out = createWriteStream(file)
  const piece = randomBytes(1 << 20)
  for (let i = 0; i < mebibytes; i++) {
    piece.writeUInt32BE(i)
    hash.update(piece)
    if (!out.write(Buffer.from(piece))) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
  return { file, digest: `sha256:${hash.digest('hex')}`, size: mebibytes << 20 }
}

async function digestOfFile(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return `sha256:${hash.digest('hex')}`
}

await using storage = await createStorage()
await using bucket = await startBucket()
const counter = await startCounter()
const url = `http://${counter.address}`
// Clients that have a token for our host would take it along to the same one.
const blobs = bucket.url(bucket.origin, `&public=${bucket.origin.replace('127.0.0.1', 'localhost')}`)

async function start(redirects: 'on' | 'off') {
  const [listen, metrics] = [await freeAddress(), await freeAddress()]
  const env = { ...bucket.aws, PINFOLD_URL: url, PINFOLD_BLOB_REDIRECTS: redirects, PINFOLD_METRICS_LISTEN: metrics }
  const server = await startProcess(storage, { listen, env, args: ['--blobs', blobs] })
  counter.lead(listen)
  return {
    listen,
    async cpuMs(): Promise<number> {
      const text = await (await fetch(`http://${metrics}/metrics`)).text()
      return 1000 * Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)![1])
    },
    async stop() {
      server.kill('SIGTERM')
      await server.exited
    },
  }
}

let server = await start('on')
const operator = await tokenOf(storage, ['--audience', url])
await clientOf(`http://${server.listen}`, operator).post('/iam/v2/groups/', { name: 'acme' })
const token = await tokenOf(storage, ['--audience', 'registry'])
const layer = await makeLayer()
const client = registryClient(`http://${server.listen}`, token)
await new Promise<void>((resolve, reject) => {
  const path = `/v2/acme/big/blobs/uploads/?digest=${layer.digest}`
  const headers = { authorization: `Bearer ${token}`, 'content-length': layer.size }
  const req = request(`http://${server.listen}${path}`, { method: 'POST', headers }, (res) => {
    res.resume()
    if (res.statusCode === 201) resolve()
    else reject(new Error(`the layer was answered ${res.statusCode}`))
  })
  createReadStream(layer.file).pipe(req.on('error', reject))
})
const config = await client.pushBlob('acme/big', '{"architecture":"amd64","os":"linux"}', types.config)
const { digest, size } = layer
await client.pushManifest('acme/big', imageOf(config, [{ mediaType: types.layer, digest, size }]), 'v1')

const auth = Buffer.from(`_token:${token}`).toString('base64')
mkdirSync(join(folder, 'docker'))
writeFileSync(join(folder, 'docker/config.json'), JSON.stringify({ auths: { [counter.address]: { auth } } }))
writeFileSync(join(folder, 'policy.json'), JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }))
const image = `${counter.address}/acme/big:v1`
const hex = digest.slice('sha256:'.length)
const authFile = join(folder, 'docker/config.json')
const commands = {
  skopeo: {
    args: (to: string) => [
      ...['--policy', join(folder, 'policy.json'), 'copy', '--src-tls-verify=false', '--authfile', authFile],
      ...[`docker://${image}`, `dir:${to}`],
    ],
    layer: hex,
  },
  crane: { args: (to: string) => ['pull', '--format', 'oci', image, to], layer: `blobs/sha256/${hex}` },
  oras: {
    args: (to: string) => ['copy', '--from-plain-http', image, '--to-oci-layout', `${to}:v1`],
    layer: `blobs/sha256/${hex}`,
  },
}

async function pull(name: keyof typeof commands): Promise<{ bytes: number; cpuMs: number }> {
  const to = join(folder, name)
  const before = await server.cpuMs()
  counter.take()
  const child = spawn(name, commands[name].args(to), {
    env: { ...cleanEnv(), DOCKER_CONFIG: join(folder, 'docker') },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let told = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    told += text
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 0, told)
  const bytes = counter.take()
  const cpuMs = (await server.cpuMs()) - before
  assert.equal(await digestOfFile(join(to, commands[name].layer)), digest, `${name} has got something else`)
  rmSync(to, { recursive: true })
  return { bytes, cpuMs }
}

const names = (Object.keys(commands) as (keyof typeof commands)[]).filter(
  (name) => spawnSync(name, ['--help'], { stdio: 'ignore' }).error === undefined,
)
assert.ok(names.length > 0, 'none of the clients is on the PATH')
let most = 0
const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`
for (const name of names) {
  const { bytes, cpuMs } = await pull(name)
  most = Math.max(most, bytes)
  console.log(
    `${name}, redirected: ${mebibytes} MiB pulled, ${kib(bytes)} through the server, ${cpuMs.toFixed(1)} ms of its processor`,
  )
}
const path = `acme/big/blobs/${digest}`
for (let i = 0; i < 200; i++) await client.ok(307, 'GET', path)
const before = await server.cpuMs()
for (let i = 0; i < pulls; i++) await client.ok(307, 'GET', path)
const cost = ((await server.cpuMs()) - before) / pulls
console.log(`a redirect costs ${cost.toFixed(3)} ms of the server's processor, of ${pulls}`)
await server.stop()
server = await start('off')
for (const name of names) {
  const { bytes, cpuMs } = await pull(name)
  assert.ok(bytes >= size, `${name} has got the bytes from somewhere else`)
  console.log(
    `${name}, by the server: ${kib(bytes)} through it, ${cpuMs.toFixed(0)} ms of its processor, the same bytes`,
  )
}
await server.stop()
counter.close()
if (values.check) {
  assert.ok(most < 64 * 1024, `${most} bytes came through the server`)
  assert.ok(cost <= 0.3, `a redirect costs ${cost} ms`)
}
