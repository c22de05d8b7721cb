// Strict OpenID Connect client that trusts the real server as an issuer, with each signing algorithm. The client is built from
// the folder `oidc` and must be on the PATH as `oidc-client`.
import { spawnSync } from 'node:child_process'
import { cleanEnv, createStorage, startProcess, tokenOf } from '../support/process.ts'

let passed = 0
let failed = 0

type Done = { ok: boolean; out: string; all: string }

function verify(issuer: string, audience: string, token: string): Done {
  const done = spawnSync('oidc-client', [issuer, audience], { input: token, env: cleanEnv(), encoding: 'utf8' })
  if (done.error) throw done.error
  return { ok: done.status === 0, out: done.stdout, all: done.stdout + done.stderr }
}

function expect(name: string, holds: boolean, seen: string): void {
  if (holds) passed++
  else failed++
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${name}${holds ? '' : `\n${seen}`}`)
}

function expectRefusal(name: string, { ok, all }: Done, reason: RegExp): void {
  expect(name, !ok && reason.test(all), all)
}

const headerOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())

async function tryIssuer(algorithms: string): Promise<void> {
  await using storage = await createStorage()
  const env = { PINFOLD_SIGNING_ALGORITHMS: algorithms, PINFOLD_LOG_LEVEL: 'error' }
  await using server = await startProcess(storage, { env })
  const token = await tokenOf({ ...storage, env: { ...storage.env, ...env } })
  const at = (text: string) => `${text} (${algorithms})`
  const listed = algorithms.split(',')
  const verified = verify(server.url, server.url, token)
  const said = verified.ok ? JSON.parse(verified.out) : {}
  expect(at('go-oidc verifies a token'), verified.ok && /^[0-9a-f]{40}$/.test(said.subject), verified.all)
  expect(
    at('discovery lists what there are keys of'),
    `${said.algorithms?.toSorted()}` === `${listed.toSorted()}`,
    verified.all,
  )
  expect(at('the first one signs'), headerOf(token).alg === listed[0], token.split('.')[0]!)
  expectRefusal(at('a token for another audience'), verify(server.url, 'https://other.example.com', token), /audience/)
  const [header, , signature] = token.split('.')
  const claims = { iss: server.url, sub: 'x', aud: server.url, exp: Math.floor(Date.now() / 1000) + 60 }
  const forged = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`
  expectRefusal(at('a token that was changed'), verify(server.url, server.url, forged), /verify signature/)
  const local = server.url.replace('127.0.0.1', 'localhost')
  expectRefusal(at('the issuer by another name'), verify(local, server.url, token), /issuer/)
}

for (const algorithms of ['ES256', 'RS256', 'RS256,ES256', 'ES256,RS256']) await tryIssuer(algorithms)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
