// Processor time of CLI commands, compared with the start of Node itself: bin/pinfold-node bench/commands.ts [--rounds N]
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { costOf } from '../test/support/cost-of-command.ts'
import { startIssuer } from '../test/support/fake-issuer.ts'
import { makeHome } from '../test/support/fake-sts.ts'
import { createStorage, project, runProcess, startProcess, tokenOf } from '../test/support/process.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' } } })
const rounds = Number(values.rounds)
/** Maximum time of a command in addition to Node's own start. */
const mostMs = 150

await using storage = await createStorage()
await using server = await startProcess(storage)
using home = makeHome()
const token = await tokenOf(storage)
const made = async (words: string, ...args: string[]) => {
  const done = await runProcess([...words.split(' '), ...args], { env: { ...storage.env, ...home.env } })
  if (done.code !== 0) throw new Error(`${words}: ${done.stderr}`)
  return done.stdout.trim()
}
await made('orgs create bench', ...storage.args)
// The credential helper answers with the stored token of the user who is signed in.
await using issuer = await startIssuer('ES256')
const claims = ['--identity-issuer', issuer.url, '--subject', 'ci', '--issuer-keys', JSON.stringify(issuer.jwks())]
const identity = await made('identities create ci --parent bench -o id', ...claims, ...storage.args)
const tokenFile = join(home.home, 'token')
writeFileSync(tokenFile, await issuer.token({ sub: 'ci', aud: server.url }))
await made('login', '--api', server.url, '--identity', identity, '--identity-token', tokenFile)
const remote = { ...storage.env, ...home.env, PINFOLD_API: server.url, PINFOLD_TOKEN: token }
const node = join(project, 'bin/pinfold-node')

type Case = { args: readonly string[]; input?: string; command?: string; code?: number }

const commands: readonly Case[] = [
  { args: ['--version'] },
  { args: ['--help'] },
  { args: ['docker-credential', 'list'] },
  { args: ['docker-credential', 'get'], input: new URL(server.url).host },
  { args: ['whoami'] },
  { args: ['images', 'list'] },
  { args: ['webhooks', 'list'] },
  { args: ['token', ...storage.args] },
  { args: ['quotas', 'list', ...storage.args] },
  { args: ['gc', '--dry-run', ...storage.args] },
  { args: ['orgs', 'list'] },
  { args: ['orgs', 'list', ...storage.args] },
  { args: ['roles', 'describe', 'viewer'] },
  { args: ['access-requests', '--help'] },
  { args: ['repos', 'list'] },
  { args: ['tags', '--help'] },
  { args: ['config'] },
  { args: ['config', 'view'] },
  { args: ['complete', 'bash'] },
  { args: ['complete', '--', 'images', 'tags', ''] },
  { args: ['health', '--help'] },
  { args: ['sessions', 'list'] },
  { args: ['invitations', 'pending'] },
  { args: ['tokens', 'push', 'list'] },
  { args: ['tokens', 'pull', 'list', '--in', 'bench'] },
  { args: ['identities', 'list'] },
  { args: ['members', 'list'] },
  { args: ['identity-providers', 'list'] },
  { args: ['identities', 'create', '--help'] },
  { args: ['tags', 'history', 'bench/app:none'], code: 1 },
  { args: ['policies', 'retention', 'list'] },
  { args: ['policies', 'retention', 'plans', 'list'] },
  { args: ['mirrors', 'upstreams', 'list'] },
  { args: ['vulnerabilities', 'status', ...storage.args] },
  { args: ['policies', 'admission', 'list'] },
  { args: ['libraries', '--help'] },
  { args: ['import', '--help'] },
  { args: ['ledger', '--help'] },
  { args: ['kubelet-credential-provider', '--help'] },
  { args: ['verify', '--help'] },
  { args: ['backup', '--help'] },
  { args: ['migrate', ...storage.args] },
]

/** Throws if the command does not do its work, since a command that fails early is quick. */
async function median({ args, code = 0, ...rest }: Case): Promise<number> {
  const times: number[] = []
  for (let i = 0; i <= rounds; i++) {
    const { cpuMs, ...done } = await costOf(args, { env: remote, ...rest })
    if (done.code !== code) throw new Error(`${args.join(' ')} ended with ${done.code}: ${done.stderr}`)
    // The first run fills the cache of compiled code.
    if (i > 0) times.push(cpuMs)
  }
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)]!
}

const bare = await median({ args: ['-e', ''], command: node })
console.log(`${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()} alone: ${bare.toFixed(0)} ms of CPU`)
let slow = 0
for (const one of commands) {
  const all = await median(one)
  const more = all - bare
  if (more > mostMs) slow++
  const beside = one.args.includes(storage.data) ? ', beside the data folder' : ''
  const name = one.args.filter((arg) => !storage.args.includes(arg)).join(' ') + beside
  const times = `${(all / bare).toFixed(1)} times`
  console.log(
    `${more > mostMs ? 'slow' : 'ok  '}  ${more.toFixed(0).padStart(4)} ms more  ${times.padStart(10)}  ${name}`,
  )
}
console.log(`${commands.length - slow} passed, ${slow} failed`)
