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
import { commandsIn, type Env, type Run } from './commands.ts'
import { dropDatabase } from './migrated.ts'
import { pooledDatabase, pooledUrlOf, pooler } from './pooler.ts'

export type { Env, Run } from './commands.ts'

export const project = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(project, 'bin/pinfold')

/** Creates a data folder and, on PostgreSQL, a schema. Commands with `args` and `env` use them. */
export async function createStorage() {
  const data = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  const schema = `t_${randomBytes(8).toString('hex')}`
  const server = pooler ? await pooledDatabase(schema) : process.env.PINFOLD_TEST_DATABASE
  // The application name distinguishes connections of this test from those of other tests.
  const named = `schema=${schema}&application_name=${schema}`
  const direct = server ? `${server}${server.includes('?') ? '&' : '?'}${named}` : ''
  const database = pooler ? pooledUrlOf(schema) : direct
  const env: Env = {
    ...(server ? { PINFOLD_MASTER_KEY: randomBytes(32).toString('hex') } : {}),
    ...(pooler ? { PINFOLD_DATABASE_DIRECT: direct } : {}),
  }
  const connect = async () => {
    const client = new pg.Client({ connectionString: server! })
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
    /** On PostgreSQL, the same without the pooler, and the URL for other programs, which know no schema. */
    direct,
    server,
    /** On PostgreSQL, the schema with the tables, and a direct connection to it. */
    schema,
    query,
    connect,
    env,
    args: ['--data', data, ...(server ? ['--database', database] : [])],
    /** Resolves once PostgreSQL has noticed the end of a killed process and has canceled its statements. */
    async settled() {
      for (let left = 1; server && left > 0; await sleep(20)) {
        const { rows } = await query('SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = $1', [
          schema,
        ])
        left = rows[0].n
      }
    },
    async [Symbol.asyncDispose]() {
      // PostgreSQL may still run a statement of a killed process, which can cause a deadlock with this one.
      const drop = async (left = 5): Promise<unknown> => {
        if (pooler) return dropDatabase(process.env.PINFOLD_TEST_DATABASE!, schema)
        return query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`).catch((error: { code?: string }) => {
          return error.code === '40P01' && left > 0 ? drop(left - 1) : Promise.reject(error)
        })
      }
      if (server) await drop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}

export type TestStorage = Awaited<ReturnType<typeof createStorage>>
/** Arguments and environment with which a command uses this database and this data folder. */
export type Where = Pick<TestStorage, 'args' | 'env'>

/** The environment of this process, without settings other than the given ones. */
export function cleanEnv(env: Env = {}): Env {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PINFOLD_') && name !== 'NODE_OPTIONS')
  return { ...(Object.fromEntries(kept) as Env), ...env }
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
  }: { args?: readonly string[]; env?: Env; listen?: string; lead?: readonly string[]; mayReject?: boolean } = {},
) {
  // `lead` is a program that starts the server, for example in a separate network.
  const [command, ...words] = [...lead, program, 'serve', ...storage.args, '--listen', listen, ...args]
  const child = spawn(command!, words, {
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

export type Process = Awaited<ReturnType<typeof startProcess>>

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
