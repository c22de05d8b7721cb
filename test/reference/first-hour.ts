// Mistakes of new users, played against real servers; writes docs/first-hour.md: bin/pinfold-node test/reference/first-hour.ts
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeHome } from '../support/fake-sts.ts'
import { createStorage, type Env, freeAddress, project, runProcess, startProcess, tokenOf } from '../support/process.ts'
import { furtherMistakes, type Mistake } from './first-hour-more.ts'
import { beforeOf, wallsOf } from './first-hour-walls.ts'
import { playFirstScreen } from './first-screen.ts'

await using storage = await createStorage()
await using server = await startProcess({ args: ['--data', storage.data], env: {} })
await using other = await createStorage()
await using otherServer = await startProcess({ args: ['--data', other.data], env: {} })
using home = makeHome()
const [host, url] = [new URL(server.url).host, server.url]
const nobody = home.env
const away = `http://${await freeAddress()}`
const otherToken = await tokenOf({ args: ['--data', other.data], env: {} })
const at = ['--data', storage.data]
const cli = (args: readonly string[], env: Env = {}) => runProcess(args, { env: { ...nobody, ...env } })
const asOperator = (...args: string[]) => cli([...args, ...at])
const good = async (...args: string[]) => assert.equal((await asOperator(...args)).code, 0, args.join(' '))

await good('orgs', 'create', 'acme')
await good('folders', 'create', 'team', '--in', 'acme')
await good('repos', 'create', 'acme/app')
const made = ['--identity-issuer', 'https://ci.example', '--subject', 'x', '--role', 'viewer', '-o', 'id']
const uid = (await asOperator('identities', 'create', 'ci', '--in', 'acme', ...made)).stdout.trim()
const viewer = await tokenOf({ args: at, env: {} }, ['--identity', uid])
const file = join(storage.data, 'file')
writeFileSync(file, '')

const operator = (title: string, words: string, code: number, says: RegExp, next: RegExp): Mistake => {
  return { title, shown: `pinfold ${words}`, code, says, next, play: () => asOperator(...words.split(' ')) }
}
const command = (title: string, words: string, env: Env, code: number, says: RegExp, next: RegExp): Mistake => {
  const before = Object.keys(env).map((name) => `${name}=… `)
  return {
    title,
    shown: `${before.join('')}pinfold ${words}`,
    code,
    says,
    next,
    play: () => cli(words.split(' '), env),
  }
}

/** First request of a push, with the error as docker prints it. */
const push = (title: string, path: string, who: readonly string[], says: RegExp, next: RegExp): Mistake => {
  const play = async () => {
    const token = await tokenOf({ args: at, env: {} }, [...who, '--audience', 'registry'])
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${url}/v2/${path}/blobs/uploads/`, { method: 'POST', headers })
    const { errors } = (await answer.json()) as { errors: { code: string; message: string }[] }
    const [{ code, message }] = errors as [{ code: string; message: string }]
    return { code: 1, stdout: '', stderr: `${code.toLowerCase().replace('_', ' ')}: ${message}` }
  }
  return { title, shown: `docker push ${host}/${path}`, code: 1, says, next, play }
}

const postgres = { PINFOLD_MASTER_KEY: 'a'.repeat(64) }
const mistakes: readonly Mistake[] = [
  command(
    'The port is taken',
    `serve --data ${join(storage.data, 'second')} --listen ${host}`,
    { PINFOLD_LOG_LEVEL: 'warn' },
    1,
    /another program listens/,
    /--listen/,
  ),
  command(
    'Two servers on one folder',
    `serve --data ${storage.data} --listen 127.0.0.1:0`,
    {},
    1,
    /another server uses the data folder/,
    /PostgreSQL/,
  ),
  command(
    'The data folder is a file',
    `serve --data ${file} --listen 127.0.0.1:0`,
    {},
    1,
    /data folder .* cannot be created/,
    /choose another with --data/,
  ),
  command('A misspelled command', 'image list', {}, 64, /unknown command 'image'/, /Did you mean|--help/),
  command('A misspelled option', 'images list --limmit 5', {}, 64, /unknown option '--limmit'/, /Did you mean|--help/),
  command(
    'A misspelled setting',
    'serve',
    { PINFOLD_LISTN: 'x' },
    78,
    /PINFOLD_LISTN is not a setting/,
    /did you mean PINFOLD_LISTEN/,
  ),
  command('A setting with a wrong value', 'serve --listen here', {}, 78, /--listen/, /HOST:PORT/),
  command(
    'A database without a master key',
    'serve --database postgres://127.0.0.1/none',
    {},
    78,
    /PINFOLD_MASTER_KEY is missing/,
    /32 random bytes/,
  ),
  command(
    'The database is unavailable',
    'migrate --database postgres://127.0.0.1:1/none',
    postgres,
    69,
    /unavailable.*ECONNREFUSED/,
    /check that it runs/,
  ),
  command(
    'A wrong data folder',
    `orgs list --data ${join(storage.data, 'typo')}`,
    {},
    69,
    /no server has used/,
    /--data/,
  ),
  command(
    'The server is not running',
    'images list',
    { PINFOLD_API: away, PINFOLD_TOKEN: viewer },
    69,
    /cannot be reached: no server listens there/,
    /check that the server runs/,
  ),
  command('Not signed in', 'images list', { PINFOLD_API: url }, 77, /not signed in/, /pinfold login/),
  command(
    'The token of another server',
    'images list',
    { PINFOLD_API: url, PINFOLD_TOKEN: otherToken },
    77,
    /not issued by this server/,
    /set PINFOLD_TOKEN to a token of this server/,
  ),
  command(
    'A value that is not a token',
    'images list',
    { PINFOLD_API: url, PINFOLD_TOKEN: 'secret' },
    77,
    /not issued by this server/,
    /set PINFOLD_TOKEN to a token of this server/,
  ),
  command(
    'A missing permission',
    'repos create acme/new',
    { PINFOLD_API: url, PINFOLD_TOKEN: viewer },
    77,
    /repo\.create/,
    /owner of the organization/,
  ),
  push('A push without permission', 'acme/app', ['--identity', uid], /manifest\.create/, /owner of the organization/),
  push('A push to the wrong organization', 'acmee/app', ['--identity', uid], /denied/, /begins with your organization/),
  push(
    'A push to the wrong organization, by the operator',
    'acmee/app',
    [],
    /organization acmee does not exist/,
    /orgs create acmee/,
  ),
  push('A push without an organization', 'app', [], /invalid/, /ORG\/NAME/),
  command(
    'HTTP to another machine',
    'images list',
    { PINFOLD_API: 'http://registry.example', PINFOLD_TOKEN: viewer },
    78,
    /is not/,
    /https/,
  ),
  operator('An unknown organization', 'folders list --in acmee', 1, /no organization acmee/, /you can see: acme/),
  operator('A name that is taken', 'folders create team --in acme', 1, /already exists/, /choose another name/),
  operator('A name without its organization', 'repos create app', 64, /app/, /acme\/app|ORG\/NAME/),
  operator('An unknown role', 'members add ci --in acme --role viewr', 1, /no role viewr/, /roles list/),
  operator('An invalid name', 'folders create Team! --in acme', 1, /name/, /a name has lowercase letters/),
  operator('An unknown tag', 'tags digest acme/app:2.0', 1, /acme\/app has no tag 2\.0/, /tags list acme\/app/),
  operator(
    'The history of an unknown tag',
    'tags history acme/app:2.0',
    1,
    /never had a tag 2\.0/,
    /tags list acme\/app/,
  ),
  operator('A deletion without a terminal', 'folders delete acme/team', 64, /would delete the folder/, /--yes/),
  {
    title: 'A deletion with an empty variable',
    shown: 'pinfold orgs delete "$ORG" --yes',
    code: 64,
    says: /the name of the organization is empty/,
    next: /give a name or a uid/,
    play: () => asOperator('orgs', 'delete', '', '--yes'),
  },
  operator(
    'The deletion of an organization that is not empty',
    'orgs delete acme --yes',
    1,
    /still has/,
    /delete its content first/,
  ),
]

const more = await furtherMistakes({ cli, nobody, operator })
const all = [...mistakes, ...more.mistakes]
const parts: string[] = [await playFirstScreen(), wallsOf(all.map(({ title }) => title))]
const wrong: string[] = []
for (const { title, shown, code, says, next, play } of all) {
  const done = await play()
  const answer = done.stderr.trim() || done.stdout.trim()
  if (done.code !== code) wrong.push(`${title}: ends with ${done.code} instead of ${code}: ${answer}`)
  for (const wanted of [says, next]) if (!wanted.test(answer)) wrong.push(`${title}: ${wanted} is not in ${answer}`)
  const screen = `\`\`\`console\n$ ${neutral(shown)}\n${neutral(answer)}\n\`\`\``
  parts.push(`## ${title}\n\n${screen}\n\nExit code ${code}.\n${beforeOf(title)}`)
}
assert.deepEqual(wrong, [])
const left = await asOperator('folders', 'list', 'acme', '-o', 'terse')
assert.equal(left.stdout, 'team\n', 'nothing is lost')

const head = `# The first hour

Find the error message that you got, and its solution. Each section has a common mistake, the message, and the exit code. The first section
shows the quick start of the [README](../README.md) without mistakes.

\`bin/pinfold-node test/reference/first-hour.ts\` runs all commands on a fresh clone with real servers, and writes this page. It needs crane
on the \`PATH\`, and root for the sections about users and disks.
`
writeFileSync(join(project, 'docs/first-hour.md'), [head, ...parts].join('\n'))
await more.end()
console.log(`${all.length} mistakes`)

/** Replaces names, ports and times that differ from run to run. */
function neutral(text: string): string {
  return text
    .replaceAll(storage.data, 'data')
    .replaceAll(other.data, 'other')
    .replaceAll(host, '127.0.0.1:8080')
    .replaceAll(away, 'http://127.0.0.1:8082')
    .replaceAll(...more.neutral)
    .replaceAll(/127\.0\.0\.1:\d{5}/g, '127.0.0.1:8443')
    .replace(/\b[0-9a-f]{40}\b/g, 'UID')
    .replaceAll(new URL(otherServer.url).host, '127.0.0.1:8081')
    .replace(/ \(request ID [^)]*\)/g, '')
    .replace(/--listen 127\.0\.0\.1:0/g, '')
    .trimEnd()
}
