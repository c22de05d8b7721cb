// Runs commands in this process or in a separate one. The database is SQLite, or the PostgreSQL of PINFOLD_TEST_DATABASE.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Terminal } from '#cli/framework/command.ts'
import { runCommandLine } from '#command-line.ts'
import { commandsIn, type Env, type Run } from './commands.ts'
import { copiedDatabase, copyOfSqlite, dropDatabase, withSettings } from './migrated.ts'
import { pooledDatabase, pooledUrlOf, pooler } from './pooler.ts'

export type { Env, Run } from './commands.ts'

export const project = fileURLToPath(new URL('../..', import.meta.url))
/** Program that tests start. `PINFOLD_TEST_PROGRAM` names another form of it, such as the executable. */
export const program = process.env.PINFOLD_TEST_PROGRAM || join(project, 'bin/pinfold')

/**
 * Creates a data folder with a database that has all tables, and the arguments and environment with which commands use them. With
 * `isEmpty`, there are no tables yet, as before the first start of a server.
 */
export async function createStorage({ isEmpty = false } = {}) {
  const data = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  // The application name distinguishes connections of this test from those of other tests.
  const name = `t_${randomBytes(8).toString('hex')}`
  const on = server === '' ? undefined : isEmpty ? await emptySchema(name) : await copyOf(name)
  if (!on && !isEmpty) await copyOfSqlite(join(data, 'pinfold.db'))
  const direct = on ? withSettings(on.url, { schema: on.schema, application_name: name }) : ''
  const database = pooler ? pooledUrlOf(name) : direct
  const env: Env = {
    ...(on ? { PINFOLD_MASTER_KEY: randomBytes(32).toString('hex') } : {}),
    ...(pooler ? { PINFOLD_DATABASE_DIRECT: direct } : {}),
  }
  const connect = async () => {
    const client = new pg.Client({ connectionString: on!.url })
    await client.connect()
    return client
  }
  const query = async (text: string, values: unknown[] = []) => {
    const client = await connect()
    return client.query(text, values).finally(() => client.end())
  }
  return {
    data,
    database,
    /** On PostgreSQL, the same without the pooler. */
    direct,
    /** Application name of the connections that commands open. */
    name,
    /** On PostgreSQL, the URL of the database without the schema, the schema with the tables, and a direct connection. */
    server: on?.url ?? '',
    schema: on?.schema ?? '',
    query,
    connect,
    env,
    args: ['--data', data, ...(on ? ['--database', database] : [])],
    /** Resolves once PostgreSQL has noticed the end of a killed process and has canceled its statements. */
    async settled() {
      const running = 'SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = $1'
      for (let left = 1; on && left > 0; await sleep(20)) left = (await query(running, [name])).rows[0].n
    },
    async [Symbol.asyncDispose]() {
      await on?.drop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}

const server = process.env.PINFOLD_TEST_DATABASE ?? ''

async function copyOf(name: string) {
  const { url, schema } = await copiedDatabase(server, name)
  return { url, schema, drop: () => dropDatabase(server, name) }
}

/** Creates a schema without tables. Behind a pooler, it is in a database of its own. */
async function emptySchema(name: string) {
  if (pooler) return { url: await pooledDatabase(name), schema: name, drop: () => dropDatabase(server, name) }
  // PostgreSQL may still run a statement of a killed process, which can cause a deadlock with this one.
  const drop = async (left = 5): Promise<void> => {
    const client = new pg.Client({ connectionString: server })
    await client.connect()
    const error = await client.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`).then(
      () => undefined,
      (reason: Error & { code?: string }) => reason,
    )
    await client.end()
    if (error && (error.code !== '40P01' || left === 0)) throw error
    if (error) await drop(left - 1)
  }
  return { url: server, schema: name, drop }
}

export type TestStorage = Awaited<ReturnType<typeof createStorage>>
/** Arguments and environment with which a command uses this database and this data folder. */
export type Where = Pick<TestStorage, 'args' | 'env'>

/** The environment of this process, without settings other than the given ones. Servers download no vulnerability data. */
export function cleanEnv(env: Env = {}): Env {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PINFOLD_') && name !== 'NODE_OPTIONS')
  return { ...(Object.fromEntries(kept) as Env), PINFOLD_VULNERABILITY_SYNC_HOURS: '0', ...env }
}

export type RunOptions = { env?: Env; cwd?: string; command?: string; input?: string }

/**
 * Runs a command to its end in this process, which takes milliseconds. `input` is its standard input. Tests of signals,
 * terminals, memory or Node's environment need `runProcess`.
 */
export function run(args: readonly string[], { env, input }: Pick<RunOptions, 'env' | 'input'> = {}): Promise<Run> {
  return commandsIn(cleanEnv(env), input)(...args)
}

/** Runs a command to its end in a separate process. */
export async function runProcess(
  args: readonly string[],
  { env, cwd = project, command = program, input }: RunOptions = {},
): Promise<Run> {
  const child = spawn(command, args, { cwd, env: cleanEnv(env), stdio: ['pipe', 'pipe', 'pipe'] })
  // A command that does not read its input may end before all input is written.
  child.stdin.on('error', () => {}).end(input)
  const output = collect(child)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...output }
}

/** Starts a server on a free port. Resolves once the server prints that it is ready. */
export async function startProcess(
  storage: Where,
  {
    args = [],
    env = {},
    listen = '127.0.0.1:0',
    lead = [],
    mayReject = false,
    command = program,
  }: {
    args?: readonly string[]
    env?: Env
    listen?: string
    lead?: readonly string[]
    mayReject?: boolean
    command?: string
  } = {},
) {
  // `lead` is a program that starts the server, for example in a separate network.
  const [first, ...words] = [...lead, command, 'serve', ...storage.args, '--listen', listen, ...args]
  const child = spawn(first!, words, {
    cwd: project,
    env: cleanEnv({ PINFOLD_LOG_LEVEL: 'warn', ...storage.env, ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = collect(child)
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }) as { code: number; signal: string })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const ready = /^ready (\S+)$/m.exec(output.stdout)?.[1]
      if (ready) resolve(ready)
    })
    child.once('close', () => reject(new Error(`the server ended before it was ready: ${output.stderr}`)))
  })
  return {
    url,
    pid: child.pid!,
    exited,
    output,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
      // The server survives an unhandled rejection, but each one is a bug.
      if (!mayReject && output.stderr.includes('promise rejection was not handled')) throw new Error(output.stderr)
    },
  }
}

/**
 * Runs `serve` in this process, which costs a tenth of the processor time of a separate one. Resolves once the server prints that
 * it is ready. Tests of signals, log lines, crashes or memory need `startProcess`.
 */
export async function startInProcess(
  storage: Where,
  { args = [], env = {}, listen = '127.0.0.1:0' }: { args?: readonly string[]; env?: Env; listen?: string } = {},
) {
  const output = { stdout: '', stderr: '' }
  const asked = Promise.withResolvers<void>()
  const ready = Promise.withResolvers<string>()
  const terminal: Terminal = {
    env: cleanEnv({ PINFOLD_LOG_LEVEL: 'error', PINFOLD_DRAIN_MS: '1000', ...storage.env, ...env }),
    input: async () => '',
    print(text) {
      output.stdout += `${text}\n`
      const url = /^ready (\S+)$/m.exec(text)?.[1]
      if (url) ready.resolve(url)
    },
    say(text) {
      output.stderr += `${text}\n`
    },
    untilSignaled: () => asked.promise,
  }
  const words = ['node', 'pinfold', 'serve', ...storage.args, '--listen', listen, ...args]
  const exited = runCommandLine(terminal, words).then((code) => ({ code, signal: null }))
  void exited.then(() => ready.reject(new Error(`the server ended before it was ready: ${output.stderr}`)))
  return {
    url: await ready.promise,
    exited,
    output,
    /** Stops the server as a signal does. */
    kill: (_signal: 'SIGTERM') => asked.resolve(),
    async [Symbol.asyncDispose]() {
      asked.resolve()
      await exited
    },
  }
}

export type Process = Awaited<ReturnType<typeof startProcess>>
export type InProcess = Awaited<ReturnType<typeof startInProcess>>

/** Token that `bin/pinfold token` prints. */
export async function tokenOf(storage: Where, args: readonly string[] = []): Promise<string> {
  const { code, stdout, stderr } = await run(['token', ...storage.args, ...args], { env: storage.env })
  if (code !== 0) throw new Error(`no token: ${stderr}`)
  return stdout.trim()
}

/** Token for a run of several hours. Gets a new token before the current one expires, and retries if that fails. */
export function lastingToken(storage: Where, args: readonly string[] = []): () => Promise<string> {
  let last: { token: Promise<string>; since: number } | undefined
  return () => {
    const former = last
    if (former && performance.now() - former.since <= 20 * 60_000) return former.token
    const token = tokenOf(storage, args)
    last = { token, since: performance.now() }
    if (!former) return token
    last.token = token.catch(() => {
      last = former
      return former.token
    })
    return last.token
  }
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text
  })
  return output
}

/** Address on this machine at which no server listens, as was checked just before. */
export async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `127.0.0.1:${port}`
}
