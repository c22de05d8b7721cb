// Imports an OSV database with very many records from its archive, and measures memory. To run it by hand:
//   bin/pinfold-node test/fuzz/osv-zip.ts [--records 1000000] [--bytes 500] [--most 500] [--served] [--folder DIR]
// Writes an archive with one file per record, each with `--bytes` bytes of text, and serves it as a mirror. The import command
// reads it, alone or beside a running server (`--served`). Prints the peak memory of each process in MiB, and fails if it exceeds
// `--most`.

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { deflateRawSync } from 'node:zlib'
import { cleanEnv, createStorage, program, runProcess, startProcess } from '../support/process.ts'
import { fieldsOf } from '../support/zip.ts'

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    bytes: { type: 'string', default: '500' },
    most: { type: 'string', default: '500' },
    served: { type: 'boolean', default: false },
    folder: { type: 'string', default: tmpdir() },
  },
})
const [count, bytes, most] = [values.records, values.bytes, values.most].map(Number) as [number, number, number]
const mib = (size: number): number => Math.round(size / 2 ** 20)

/** Records are about a hundred thousand different package names. */
function recordOf(i: number): Buffer {
  const details = randomBytes(Math.ceil((bytes * 3) / 8)).toString('base64')
  const affected = [
    {
      package: { ecosystem: 'PyPI', name: `package-${i % 100_000}` },
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: `1.${i % 50}.${i % 7}` }] }],
    },
  ]
  const named = { id: `PYSEC-${i}`, aliases: [`CVE-2026-${i}`], modified: '2026-11-20T02:00:00Z' }
  return Buffer.from(JSON.stringify({ ...named, summary: `About ${i}`, details, affected }))
}

/** An archive with more than 65,535 entries needs the end record of ZIP64. */
function endOf(entries: number, size: number, offset: number): Buffer {
  if (offset + size > 0xffff_ffff) throw new Error('the archive would have more than 4 GiB; take fewer --bytes')
  const large = Buffer.alloc(56 + 20)
  large.write('PK\x06\x06', 0, 'latin1')
  large.writeBigUInt64LE(44n, 4)
  large.writeUInt16LE(45, 12)
  large.writeUInt16LE(45, 14)
  for (const at of [24, 32]) large.writeBigUInt64LE(BigInt(entries), at)
  large.writeBigUInt64LE(BigInt(size), 40)
  large.writeBigUInt64LE(BigInt(offset), 48)
  large.write('PK\x06\x07', 56, 'latin1')
  large.writeBigUInt64LE(BigInt(offset + size), 64)
  large.writeUInt32LE(1, 72)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  for (const at of [8, 10]) end.writeUInt16LE(Math.min(entries, 0xffff), at)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([large, end])
}

/** The directory is first written to a separate file, since it may be large too. */
async function makeArchive(folder: string): Promise<string> {
  const [file, directory] = [join(folder, 'all.zip'), join(folder, 'directory')]
  const sizes = { contents: 0, directory: 0 }
  const entries = createWriteStream(directory)
  async function* contents(): AsyncGenerator<Buffer> {
    for (let i = 0; i < count; i++) {
      const [name, content] = [`PYSEC-${i}.json`, recordOf(i)]
      const packed = deflateRawSync(content, { level: 1 })
      const fields = fieldsOf(content, packed, name)
      const location = Buffer.alloc(14)
      location.writeUInt32LE(sizes.contents, 10)
      const entry = Buffer.concat([
        ...[Buffer.from('PK\x01\x02', 'latin1'), Buffer.from([45, 0])],
        ...[fields, location, Buffer.from(name)],
      ])
      if (!entries.write(entry)) await once(entries, 'drain')
      const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name), packed])
      sizes.directory += entry.length
      sizes.contents += local.length
      yield local
    }
    entries.end()
    await once(entries, 'finish')
    yield* createReadStream(directory)
    yield endOf(count, sizes.directory, sizes.contents)
  }
  await pipeline(contents, createWriteStream(file))
  rmSync(directory)
  return file
}

async function serve(file: string) {
  const server = createServer((request, response) => {
    if (request.url !== '/osv/PyPI/all.zip') return response.writeHead(404).end()
    response.writeHead(200, { 'content-length': statSync(file).size, etag: '"one"' })
    pipeline(createReadStream(file), response).catch(() => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Maximum memory of a process so far, in MiB. After the process has ended, its last known value. */
function peakOf(pid: number): () => number {
  let peak = 0
  return () => {
    try {
      const said = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      peak = Math.max(peak, Math.round(Number(said ?? 0) / 1024))
    } catch {}
    return peak
  }
}

const folder = mkdtempSync(join(values.folder, 'pinfold-osv-zip-'))
try {
  await using storage = await createStorage()
  const file = await makeArchive(folder)
  console.log(`${count} records in an archive of ${mib(statSync(file).size)} MiB`)
  const mirror = await serve(file)
  await using served = values.served ? await startProcess(storage) : { pid: 0, async [Symbol.asyncDispose]() {} }
  const server = served.pid === 0 ? undefined : peakOf(served.pid)
  const began = performance.now()
  const words = ['vulnerabilities', 'sync', ...storage.args, '--mirror', mirror.url, '--source', 'osv/PyPI']
  const child = spawn(program, words, { env: cleanEnv(storage.env), stdio: ['ignore', 'inherit', 'inherit'] })
  const command = peakOf(child.pid!)
  let code: number | undefined
  child.once('exit', (status) => {
    code = status ?? 1
  })
  while (code === undefined) {
    command()
    server?.()
    await sleep(100)
  }
  const seconds = Math.round((performance.now() - began) / 1000)
  const { stdout } = await runProcess(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], {
    env: storage.env,
  })
  const [{ records }] = JSON.parse(stdout)
  const peaks = [command(), ...(server ? [server()] : [])]
  console.log(
    `${records} records read in ${seconds} s; at most ${peaks.join(' and ')} MiB, of which ${most} are allowed`,
  )
  mirror.close()
  process.exitCode = code === 0 && Number(records) === count && Math.max(...peaks) <= most ? 0 : 1
  console.log(process.exitCode === 0 ? 'all as it should be' : 'FAILED')
} finally {
  rmSync(folder, { recursive: true })
}
