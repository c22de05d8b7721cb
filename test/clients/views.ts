// Views through clients that we did not write, by hand: crane, oras, regctl, skopeo, podman and containerd, those that are on
// the PATH. Pulls through both kinds of views and the two joined, and prints the table of docs/reference/views.md.
// bin/pinfold-node test/clients/views.ts
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, clientOf, roleUids } from '../support/pinfold.ts'
import { createStorage, freeAddress, startProcess, tokenOf } from '../support/process.ts'
import {
  byName,
  digestIn,
  firstWord,
  folder,
  fresh,
  goVersion,
  image,
  isThere,
  play,
  type Scene,
  sh,
  startContainerd,
  type Way,
  write,
} from './view-ways.ts'

const dayMs = 86_400_000

/** Host name that stands for a view, in the form of a Docker mirror. */
function byHost({ mirror, env, authfile }: Scene): Way[] {
  const ref = `${mirror}/app:stable`
  const crane = (...args: string[]) => play('crane', args, env)
  const inspect = [
    'inspect',
    '--authfile',
    authfile,
    '--tls-verify=false',
    '--format',
    '{{.Digest}}',
    `docker://${ref}`,
  ]
  return [
    {
      client: 'crane',
      version: () => goVersion('crane', 'go-containerregistry'),
      how: 'a host of its own',
      pull: async () => ({
        ...(await crane('pull', ref, `${fresh()}/i.tar`)),
        digest: digestIn(await crane('digest', ref)),
      }),
    },
    {
      client: 'skopeo',
      version: () => firstWord(sh('skopeo', ['--version']).out),
      how: 'a host of its own',
      pull: async () => {
        const done = await play('skopeo', inspect)
        return { ...done, digest: digestIn(done) }
      },
    },
  ]
}

/** A tag that had one image for a month, and has had another one since today. */
async function seed(host: string, env: Record<string, string>, operator: Client, org: string): Promise<string> {
  const crane = (...args: string[]): string => {
    const done = sh('crane', args, env)
    if (done.code !== 0) throw new Error(done.all)
    return done.out
  }
  for (const name of ['old', 'new']) {
    write(`${name}.txt`, randomBytes(50_000).toString('hex'))
    sh('tar', ['-cf', `${name}.tar`, `${name}.txt`])
    crane('append', '--oci-empty-base', '-f', `${name}.tar`, '-t', `${host}/${image}:${name}`)
  }
  const old = crane('digest', `${host}/${image}:old`)
  const [repo] = (await operator.get(`/registry/v2/repos?uidp.descendants_of=${org}`)).body.repos
  const time = new Date(Date.now() - 30 * dayMs).toISOString()
  const tags = [{ name: 'stable', records: [{ time, digest: old }] }]
  await operator.post('/control/v1/tagHistory:import', { repoUid: repo.uid, tags })
  crane('tag', `${host}/${image}:new`, 'stable')
  return old
}

const dayOf = (days: number) => new Date(Date.now() - days * dayMs).toISOString().slice(0, 10).replaceAll('-', '')
const views = [`at-${dayOf(10)}`, 'min-7d', `at-${dayOf(2)}_min-7d_hold-1h`]

await using storage = await createStorage()
const listen = await freeAddress()
const port = listen.split(':')[1]!
await using server = await startProcess(storage, {
  listen,
  env: { PINFOLD_LOG_LEVEL: 'error', PINFOLD_HOST_PATHS: JSON.stringify({ [`localhost:${port}`]: 'min-7d/acme' }) },
})
let failed = 0
try {
  const operator = clientOf(server.url, await tokenOf(storage))
  const made = async (path: string, body: object) => (await operator.post(path, body)).body.uid as string
  const org = await made('/iam/v2/groups/', { name: 'acme' })
  const member = async (name: string, role: string) => {
    const claimMatch = { issuer: 'https://issuer.example.com', subject: name }
    const uid = await made(`/iam/v2/identities/${org}`, { name, claimMatch })
    await made(`/iam/v2/roleBindings/${org}`, { identityUid: uid, roleUid: role })
    return tokenOf(storage, ['--audience', 'registry', '--identity', uid])
  }
  const { host } = new URL(server.url)
  const mirror = `localhost:${port}`
  const login = (name: string, token: string) => {
    mkdirSync(join(folder, name))
    const auth = Buffer.from(`_token:${token}`).toString('base64')
    write(`${name}/config.json`, JSON.stringify({ auths: { [host]: { auth }, [mirror]: { auth } } }))
    return { DOCKER_CONFIG: join(folder, name) }
  }
  const old = await seed(host, login('pusher', await member('pusher', roleUids.push)), operator, org)
  const token = await member('reader', roleUids.pull)
  const env = login('reader', token)
  const scene: Scene = { host, mirror, token, env, authfile: join(env.DOCKER_CONFIG, 'config.json') }
  console.log('| Client | By | `at-` | `min-` | Both | A refusal shows |\n| --- | --- | --- | --- | --- | --- |')
  using daemon = await startContainerd()
  for (const way of [...byName(scene), ...daemon.ways(scene)]) await report(way, old, views)
  for (const way of byHost(scene)) if (isThere(way.client)) await report(way, old, ['min-7d'])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0

async function report({ client, version, how, pull }: Way, old: string, through: readonly string[]): Promise<void> {
  const cellOf = async (view: string): Promise<string> => {
    if (!through.includes(view)) return ''
    const { code, digest, all } = await pull(view)
    if (code === 0 && digest === old) return /can be pulled from|not old enough/.test(all) ? 'yes, warns' : 'yes'
    failed++
    console.error(`${client} by ${how} through ${view}: ${all.slice(-2000)}`)
    return 'no'
  }
  const cells: string[] = []
  for (const view of views) cells.push(await cellOf(view))
  let refusal = ''
  if (through.length > 1) {
    const { code, all } = await pull('min-60d')
    if (code === 0) failed++
    refusal =
      code === 0
        ? 'nothing: it was pulled'
        : /can be pulled from/.test(all)
          ? 'why, and from when on'
          : /403/.test(all)
            ? '403 only'
            : all.slice(-300)
  }
  console.log(`| ${client} ${version()} | ${how} | ${cells.join(' | ')} | ${refusal} |`)
}
