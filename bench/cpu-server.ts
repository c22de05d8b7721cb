// Server of a checkout, started like `npm start` and filled only through the public API, so that servers of two checkouts can be
// compared.
import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce } from '../test/support/at-once.ts'
import { clientOf, type Json } from '../test/support/pinfold.ts'
import { cleanEnv, createStorage, runProcess, type TestStorage } from '../test/support/process.ts'
import { imageOf, registryClient, types } from '../test/support/registry.ts'
import { cpuSeconds, loadCore, serverCore } from './load.ts'

const repos = 1000
const folders = 10
const tags = 100
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0

/** A measured server: its process, its two tokens, and the test data. */
export type Measured = Awaited<ReturnType<typeof startMeasured>>

/** Moves this process, which sends the requests, to another processor than the servers. */
export function pinLoad(): void {
  pin(process.pid, loadCore)
}

/** Binds a process to one processor, if the machine supports this. */
export function pin(pid: number, core: string): void {
  if (canPin) spawnSync('taskset', ['-acp', core, String(pid)])
}

/**
 * Starts the server of `checkout` with a new data folder or schema, and fills it. Its log output is discarded. With `monitor`, the
 * server loads this module first, and can exchange messages with it.
 */
export async function startMeasured(checkout: string, monitor?: string) {
  await using opening = new AsyncDisposableStack()
  const storage = opening.use(await createStorage())
  const program = join(checkout, 'bin/pinfold')
  const command = [program, 'serve', ...storage.args, '--listen', '127.0.0.1:0']
  const [file, ...args] = canPin ? ['taskset', '-c', serverCore, ...command] : command
  const env = cleanEnv({ ...storage.env, ...(monitor !== undefined && { NODE_OPTIONS: `--import ${monitor}` }) })
  const stdio: StdioOptions = ['ignore', 'pipe', 'ignore', ...(monitor === undefined ? [] : (['ipc'] as const))]
  const child: ChildProcess = spawn(file!, args, { cwd: checkout, env, stdio })
  const exited = once(child, 'exit')
  opening.defer(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const ended = exited.then(() => Promise.reject(new Error(`the server of ${checkout} ended`)))
  ended.catch(() => {})
  const [chunk] = await Promise.race([once(child.stdout!, 'data'), ended])
  child.stdout!.resume()
  const url = /^ready (\S+)/.exec(String(chunk))![1]!
  /** Gets new tokens, for runs that take longer than a token is valid. */
  const renew = async () => ({
    token: await tokenOf(program, storage),
    registryToken: await tokenOf(program, storage, ['--audience', 'registry']),
  })
  /** Token of an identity, for the API or for another audience. */
  const tokenFor = (identity: string, audience?: string) =>
    tokenOf(program, storage, ['--identity', identity, ...(audience ? ['--audience', audience] : [])])
  const tokens = await renew()
  const seeded = await fill(url, tokens.token, tokens.registryToken)
  const opened = opening.move()
  return {
    url,
    pid: child.pid!,
    child,
    ...tokens,
    renew,
    tokenFor,
    ...seeded,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Resolves when the server has done the background work of earlier requests, such as routing the events of pulls. */
export async function idle(pid: number): Promise<void> {
  for (let tries = 0, last = -1; tries < 25; tries++) {
    const now = cpuSeconds(pid)
    if (now - last <= 0.01) return
    last = now
    await sleep(150)
  }
}

/** Uses the checkout's own program, since another version could migrate the database first. */
async function tokenOf(program: string, storage: TestStorage, more: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await runProcess(['token', ...storage.args, ...more], {
    command: program,
    env: storage.env,
  })
  if (code !== 0) throw new Error(`no token: ${stderr}`)
  return stdout.trim()
}

/**
 * Creates `bench` with 1,000 repositories in 10 folders, and `bench/app` with an image under 100 tags and another one without a
 * tag.
 */
async function fill(url: string, token: string, registryToken: string) {
  const client = clientOf(url, token)
  const made = async (path: string, body: Json) => {
    const answer = await client.post(path, body)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body.uid as string
  }
  const org = await made('/iam/v2/groups/', { name: 'bench' })
  const parents: string[] = []
  for (let i = 0; i < folders; i++) parents.push(await made(`/iam/v2/groups/${org}`, { name: `folder-${i}` }))
  const description = 'An image of the shop, rebuilt nightly'
  await atOnce(8, repos, (i) =>
    made(`/registry/v2/repos/${parents[i % folders]}`, { name: `image-${String(i).padStart(4, '0')}`, description }),
  )
  const repo = await made(`/registry/v2/repos/${org}`, { name: 'app', description })

  const registry = registryClient(url, registryToken)
  const config = await registry.pushBlob('bench/app', '{"architecture":"amd64","os":"linux"}', types.config)
  const layer = await registry.pushBlob('bench/app', Buffer.alloc(4096, 7))
  const pushed = ['one', 'two'].map((title) =>
    JSON.stringify(imageOf(config, [layer], { annotations: { 'org.opencontainers.image.title': title } })),
  )
  const [{ digest }] = await Promise.all([
    registry.pushManifest('bench/app', pushed[0]!),
    registry.pushManifest('bench/app', pushed[1]!),
  ])
  await atOnce(8, tags, (i) => registry.pushManifest('bench/app', pushed[0]!, `t${i}`))
  return { org, repo, pushed, digest }
}
