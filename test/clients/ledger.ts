// Transparency log read by another program, with the code of Go's checksum database (golang.org/x/mod). The program is built from
// the folder `ledger-log` and must be on the PATH.
import { spawn } from 'node:child_process'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { startPinfold } from '../support/pinfold.ts'
import { digestOf, plantTag } from '../support/tags.ts'

let passed = 0
let failed = 0

function expect(name: string, ok: boolean, seen: string): void {
  if (ok) passed++
  else failed++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${ok ? '' : `\n${seen}`}`)
}

await using pinfold = await startPinfold()
const { app, operator, url } = pinfold
const org = (await pinfold.seed.group('', { name: 'acme' })).uid as string
const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
const prefix = `/ledger/${org}`

/** Runs asynchronously, since the server is in this process. */
async function read(vkey: string, ...earlier: string[]): Promise<{ code: number; out: string }> {
  const child = spawn('ledger-log', [url + prefix, vkey, ...earlier], {
    env: { ...process.env, TOKEN: operator.token! },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk))
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (ended) => resolve(ended ?? 1))
  })
  return { code, out }
}

await plantTag(pinfold, repo, 'v1', 'a')
await runJob(app, sequenceLedgers)
const policy = (await operator.get(`${prefix}/policy`)).text
const vkey = /^log (\S+)/m.exec(policy)![1]!
const first = await read(vkey)
expect('a log of two entries is read', first.code === 0 && first.out.startsWith('2 '), first.out)

const records = Array.from({ length: 700 }, (_, i) => ({
  time: new Date(Date.parse('2026-01-01T00:00:00Z') + i * 60_000).toISOString(),
  digest: digestOf(String(i)),
}))
const imported = { repoUid: repo, tags: [{ name: 'v2', records }] }
expect('a history is imported', (await operator.post('/control/v1/tagHistory:import', imported)).status === 200, '')
await runJob(app, sequenceLedgers)
const [size, root] = first.out.trim().split(' ') as [string, string]
const second = await read(vkey, size, root)
expect(
  'it has grown, and the former one is its beginning',
  second.code === 0 && second.out.startsWith('702 '),
  second.out,
)

const other = await read(vkey, size, Buffer.alloc(32, 1).toString('base64'))
expect('another beginning is refused', other.code !== 0, other.out)
const stranger = vkey.replace(/\+[^+]+$/, '+AAAA')
const refused = await read(stranger)
expect('another key is refused', refused.code !== 0, refused.out)

console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
