// `bin/pinfold-node bench/exchange.ts`: token exchanges per second, compared with the signatures that each exchange needs. Also
// compares requests with a known token and requests with new tokens. Default: `--rounds 7`. Needs taskset.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { generateKeyPair, jwtVerify, SignJWT } from 'jose'
import { startIssuer } from '../test/support/fake-issuer.ts'
import { clientOf, type Json, roleUids, startPinfold } from '../test/support/pinfold.ts'
import { interleave, serverCore } from './load.ts'

const root = join(import.meta.dirname, '..')
const clients = 16
const measureMs = 2000
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, ceilings: { type: 'boolean', default: false } },
})

/** Rate per second at which the clients finish `work` together, at most `most` times. */
async function rateOf(work: (index: number) => Promise<unknown>, most = Infinity): Promise<number> {
  const began = performance.now()
  let done = 0
  let started = 0
  const client = async () => {
    while (performance.now() - began < measureMs && started < most) {
      await work(started++)
      done++
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return (done * 1000) / (performance.now() - began)
}

/** The bare signatures, in a process of its own on the server's core: prints one rate for each line that it reads. */
async function serveCeilings(): Promise<void> {
  const rsa = await generateKeyPair('RS256')
  const ec = await generateKeyPair('ES256')
  const claims = {
    iss: 'https://issuer.example.com',
    sub: 'repo:acme/web:ref:refs/heads/main',
    aud: 'https://example.com',
  }
  const sign = (alg: string, key: Parameters<SignJWT['sign']>[0]) =>
    new SignJWT(claims).setProtectedHeader({ alg, kid: 'key-1' }).setExpirationTime('1h').sign(key)
  const outside = await sign('RS256', rsa.privateKey)
  const ours = await sign('ES256', ec.privateKey)
  const works: Record<string, () => Promise<unknown>> = {
    exchange: async () => [await jwtVerify(outside, rsa.publicKey), await sign('ES256', ec.privateKey)],
    verify: () => jwtVerify(ours, ec.publicKey),
  }
  console.log('ready')
  for await (const line of process.stdin.setEncoding('utf8')) console.log(await rateOf(works[String(line).trim()]!))
}

const agent = new http.Agent({ keepAlive: true, maxSockets: clients })

function request(method: string, url: string, token: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const req = http.request(url, { method, agent, headers: { authorization: `Bearer ${token}` } }, (res) => {
      let text = ''
      res.setEncoding('utf8')
      res.on('data', (chunk: string) => {
        text += chunk
      })
      res.on('end', () => (res.statusCode === 200 ? resolve(text) : reject(new Error(`${res.statusCode} ${text}`))))
    })
    req.on('error', reject)
    req.end()
  })
}

const children: ChildProcess[] = []

function startChild(command: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn('taskset', ['-c', serverCore, ...command], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  return child
}

async function lineOf(child: ChildProcess): Promise<string> {
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${child.spawnargs.join(' ')} ended`)))
  const [chunk] = await Promise.race([once(child.stdout!, 'data'), ended])
  return String(chunk).split('\n')[0]!
}

/** Number of signatures that a server verifies for this number of requests with one token. */
async function countChecks(requests: number): Promise<number> {
  await using pinfold = await startPinfold()
  const org = await pinfold.seed.group()
  const reader = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.viewer)).uid)
  const { keyring } = pinfold.app
  const { verifier } = keyring
  let checks = 0
  keyring.verifier = (kid, algorithm) => {
    checks++
    return verifier(kid, algorithm)
  }
  for (let i = 0; i < requests; i++) await reader.get(`/iam/v2/groups/${org.uid}`)
  return checks
}

async function measure(): Promise<void> {
  spawnSync('taskset', ['-cp', '1', String(process.pid)])
  const data = mkdtempSync(join(tmpdir(), 'pinfold-bench-'))
  const issuer = await startIssuer()
  try {
    const command = [join(root, 'bin/pinfold'), 'serve', '--data', data, '--listen', '127.0.0.1:0']
    const server = startChild(command, {
      PINFOLD_ALLOW_INSECURE_ISSUERS: 'on',
      PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on',
      PINFOLD_EXCHANGES_PER_SOURCE: '10000000',
      PINFOLD_EXCHANGES_PER_ISSUER: '10000000',
      PINFOLD_LOG_LEVEL: 'warn',
    })
    const url = (await lineOf(server)).replace('ready ', '')
    const ceilings = startChild([process.execPath, import.meta.filename, '--ceilings'])
    await lineOf(ceilings)
    const ceiling = async (name: string) => {
      ceilings.stdin!.write(`${name}\n`)
      return Number(await lineOf(ceilings))
    }

    const printed = spawnSync(join(root, 'bin/pinfold'), ['token', '--data', data], { encoding: 'utf8' })
    const operator = clientOf(url, printed.stdout.trim())
    const made = async (path: string, body: Json) => (await operator.post(path, body)).body.uid as string
    const org = await made('/iam/v2/groups/', { name: 'bench' })
    const subject = 'repo:acme/web:ref:refs/heads/main'
    const identity = await made(`/iam/v2/identities/${org}`, {
      name: 'job',
      claimMatch: { issuer: issuer.url, subject, claims: { repository_id: '456789' } },
    })
    await made(`/iam/v2/roleBindings/${org}`, { identityUid: identity, roleUid: roleUids.viewer })
    const repo = await made(`/registry/v2/repos/${org}`, { name: 'web' })

    const outside = await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        issuer.token({ sub: subject, aud: url, jti: String(index), repository_id: '456789' }),
      ),
    )
    const exchangeUrl = `${url}/sts/exchange?aud=${encodeURIComponent(url)}&identity=${identity}`
    const exchange = async (index: number) => {
      const answer = await request('POST', exchangeUrl, outside[index % outside.length]!)
      return (JSON.parse(answer) as { token: string }).token
    }
    const known = await exchange(0)
    const get = (token: string) => request('GET', `${url}/registry/v2/repos/${repo}`, token)
    const fresh: string[] = []

    const rates = await interleave(Number(values.rounds), {
      signatures: () => ceiling('exchange'),
      exchange: () => rateOf(async (index) => fresh.push(await exchange(index))),
      verify: () => ceiling('verify'),
      known: () => rateOf(() => get(known)),
      // Tokens of the exchanges above. Each is used once.
      first: () => rateOf(() => get(fresh.pop()!), fresh.length),
    })
    const requests = 1000
    const checks = await countChecks(requests)
    const rate = (value: number) => Math.round(value).toLocaleString('en')
    const share = (a: number, b: number) => (a / b).toFixed(2)
    console.log(`
| What, ${clients} at a time | a second | share | of |
| --- | --- | --- | --- |
| one RS256 verify and one ES256 sign, jose | ${rate(rates.signatures)} | | |
| exchanges | ${rate(rates.exchange)} | ${share(rates.exchange, rates.signatures)} | one verify and one sign |
| one ES256 verify, jose | ${rate(rates.verify)} | | |
| Get by uid, a token that is known | ${rate(rates.known)} | ${share(rates.known, rates.verify)} | one verify |
| Get by uid, a new token each time | ${rate(rates.first)} | ${share(rates.first, rates.known)} | a token that is known |

Signatures checked for ${requests} requests with one token: ${checks}.
`)
  } finally {
    agent.destroy()
    for (const child of children) child.kill('SIGKILL')
    await issuer[Symbol.asyncDispose]()
    rmSync(data, { recursive: true, force: true })
  }
}

await (values.ceilings ? serveCeilings() : measure())
