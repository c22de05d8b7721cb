// Parent process of the measured server. It starts the server, and measures one request at a time.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cleanEnv, project } from '../process.ts'
import { serverOptions } from '../server-options.ts'
import type { Cost } from './monitor.ts'
import type { Command, Facts, Report } from './server.ts'

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

export async function startMeasured() {
  const child = fork(file('server.ts'), {
    cwd: project,
    execArgv: [...serverOptions(), '--import', file('../loopback-only.mjs')],
    env: { ...cleanEnv(), PINFOLD_TEST_DATABASE: process.env.PINFOLD_TEST_DATABASE ?? '' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let errors = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-10_000)
  })
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code, signal) => reject(new Error(`the server ended with ${code ?? signal}: ${errors}`)))
  })
  ended.catch(() => {})

  const take = async <T extends Report['type']>(type: T): Promise<Extract<Report, { type: T }>> => {
    const [report] = (await Promise.race([once(child, 'message'), ended])) as [Report]
    if (report.type !== type) throw new Error(`the server reported ${report.type} in place of ${type}`)
    return report as Extract<Report, { type: T }>
  }
  const ask = <T extends Report['type']>(command: Command, type: T) => {
    const answer = take(type)
    child.send(command)
    return answer
  }
  const { facts } = await take('facts')
  return {
    facts: facts as Facts,
    pid: child.pid!,
    /** Costs of the server between the start and the end of `send`, and the handlers that it called. */
    async measure<T>(send: () => Promise<T>, exact = true): Promise<{ cost: Cost; answer: T; handled: string[] }> {
      await ask({ type: 'begin', exact }, 'begun')
      const answer = await Promise.race([send(), ended])
      const { cost, handled } = await ask({ type: 'end' }, 'cost')
      return { cost, answer, handled }
    },
    /** Number of requests in the server's metrics, by entry point and method. */
    reached: async () => (await ask({ type: 'reached' }, 'reached')).requests,
    errors: () => errors,
    async [Symbol.asyncDispose]() {
      ended.catch(() => {})
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

export type Measured = Awaited<ReturnType<typeof startMeasured>>
