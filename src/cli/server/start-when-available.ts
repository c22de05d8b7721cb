// Start of a server whose PostgreSQL database may be unavailable or read-only. Meanwhile the server waits, and its port answers
// 503.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Port } from '#api/port/open-port.ts'
import type { Config } from '#config.ts'
import { isUnavailable, refusalAdvice } from '#db/unavailable.ts'
import { createLogger } from '#lib/log.ts'
import { formatFor } from '#lib/terminal/log-text.ts'
import { checkDatabase } from '../../open-database.ts'

const firstPauseMs = 250
const longestPauseMs = 2000
/** Number of failed starts after which the process exits. Only starts for which the database answered are counted. */
const mostStarts = 3

/**
 * Starts as soon as the database answers and accepts writes. Throws errors that waiting does not fix. Returns `undefined` if a
 * signal asked the process to end. `start` gets a function that takes over the port if it is already open.
 */
export async function startWhenAvailable<T>(
  config: Config,
  untilSignaled: () => Promise<void>,
  start: (config: Config, takePort: () => Port | undefined) => Promise<T>,
): Promise<T | undefined> {
  if (config.database === '') return start(config, () => undefined)
  await using waiting = createWaiting(config, untilSignaled)
  for (let starts = 0, pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      await checkDatabase(config)
      starts++
      return await start(config, waiting.takePort)
    } catch (error) {
      if (!isUnavailable(error) || refusalAdvice(error) || starts >= mostStarts) throw error
      await waiting.begin(error)
    }
    if (await waiting.isEnded(pauseMs)) return undefined
  }
}

/** Minimum time between two warnings with different reasons. */
const warnEveryMs = 60_000

function createWaiting(config: Config, untilSignaled: () => Promise<void>) {
  const log = createLogger(process.stderr, config.logLevel, { format: formatFor(process.stderr) })
  let open: Port | undefined
  let asked: Promise<'asked'> | undefined
  let warned: { reason: string; at: number } | undefined

  return {
    async begin(error: unknown): Promise<void> {
      asked ??= untilSignaled().then(() => 'asked')
      const reason = error instanceof Error ? error.message : String(error)
      // An unstable database may fail with a different error each time, so warnings about new reasons are limited too.
      const isNew = !warned || (reason !== warned.reason && performance.now() - warned.at >= warnEveryMs)
      if (isNew) {
        log.warn('waiting for the database', { error })
        warned = { reason, at: performance.now() }
      }
      if (open) return
      const [{ openPort }, { answerWaiting }] = await Promise.all([
        import('#api/port/open-port.ts'),
        import('#api/port/waiting.ts'),
      ])
      open = await openPort({ config, log }).catch((cause: unknown) => {
        throw listenProblem(cause, config.listen)
      })
      open.answer(answerWaiting(config))
      // Loads the modules while the server waits, so the start is quick once the database answers.
      await Promise.all([import('#create-app.ts'), import('#api/server.ts'), import('#workers.ts')])
    },
    /** Waits for a time. Returns true if a signal asked the process to end meanwhile. */
    isEnded: async (ms: number) => (await Promise.race([asked, sleep(ms)])) === 'asked',
    /** Hands over the open port. It answers that the server is waiting until the caller answers requests itself. */
    takePort(): Port | undefined {
      const taken = open
      open = undefined
      return taken
    },
    async [Symbol.asyncDispose]() {
      await open?.drain(0)
      log.flush()
    },
  }
}

/** Reasons why a server cannot listen on its address, by error code. */
const problems: Record<string, string> = {
  EADDRINUSE: 'another program listens there; choose another address with --listen',
  EADDRNOTAVAIL: 'this machine does not have that address; choose another with --listen',
  ENOTFOUND: 'this machine does not have that address; choose another with --listen',
  EACCES: 'the system does not allow it, which is usual for ports below 1024; choose a higher port with --listen',
}

/** Adds a next step to an error of a listener. */
export function listenProblem(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const problem = problems[(error as NodeJS.ErrnoException).code ?? '']
  return problem ? new Error(`cannot listen on ${host}:${port}: ${problem}`, { cause: error }) : error
}
