// Pool of worker processes that run test files (see worker.ts).
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../run.ts'
import type { Report } from './worker.ts'

/** One test file, run on one database. */
export type Unit = {
  file: string
  engine: string
  /** URL of the database; empty for SQLite. */
  database: string
  /** True if the file needs a process that has run no other file. */
  isAlone: boolean
  expectedMs: number
}

export type Listener = {
  told(unit: Unit, report: Exclude<Report, { kind: 'done' }>): void
  /** `output` is the last part of the file's standard output and standard error. */
  ended(unit: Unit, ms: number, output: string): void
}

/** Time limit of a whole file. The limit of a single test is shorter; this one ends a file that hangs while it is loaded. */
const fileMs = 900_000
/** Memory size above which a worker is replaced by a new one. */
const maxBytes = 1_000_000_000
const keptOutput = 20_000

/** Runs all units on `size` workers, longest first. */
export async function runUnits(units: readonly Unit[], size: number, listener: Listener): Promise<void> {
  const waiting = [...units].sort((a, b) => b.expectedMs - a.expectedMs)
  const take = (database: string | undefined): Unit | undefined => {
    const same = waiting.findIndex((unit) => unit.database === database)
    return waiting.splice(Math.max(same, 0), 1)[0]
  }
  const lane = async (database: string | undefined) => {
    let worker: Worker | undefined
    for (let unit = take(database); unit; unit = take(worker?.database ?? database)) {
      if (worker && (unit.isAlone || worker.database !== unit.database)) worker = await worker.end()
      worker ??= new Worker(unit.database)
      const isReusable = await worker.run(unit, listener)
      if (!isReusable || unit.isAlone) worker = await worker.end()
    }
    await worker?.end()
  }
  const databases = [...new Set(units.map((unit) => unit.database))]
  await Promise.all(Array.from({ length: size }, (_, i) => lane(databases[i % databases.length])))
}

class Worker {
  readonly database: string
  readonly #child: ChildProcess
  readonly #exited: Promise<string>
  #output = ''

  constructor(database: string) {
    this.database = database
    this.#child = fork(join(root, 'scripts/test/worker.ts'), {
      cwd: root,
      env: { ...process.env, PINFOLD_TEST_DATABASE: database },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-keptOutput)
      })
    }
    this.#exited = new Promise((resolve) =>
      this.#child.once('exit', (code, signal) => resolve(signal ? `with ${signal}` : `with exit code ${code}`)),
    )
  }

  /** Runs one file. Returns true if the worker can run another file. */
  async run(unit: Unit, listener: Listener): Promise<boolean> {
    const began = Date.now()
    this.#output = ''
    const memory = Promise.withResolvers<number>()
    const hear = (report: Report) => {
      if (report.kind === 'done') memory.resolve(report.memory)
      else listener.told(unit, report)
    }
    let isLate = false
    const limit = setTimeout(() => {
      isLate = true
      this.#child.kill('SIGKILL')
    }, fileMs)
    this.#child.on('message', hear)
    // A worker that has just crashed rejects the message; the code below reports its end.
    this.#child.send(unit.file, () => {})
    const end = await Promise.race([memory.promise, this.#exited])
    this.#child.off('message', hear)
    clearTimeout(limit)
    if (typeof end === 'string') {
      const reason = isLate ? `it did not end within ${fileMs / 60_000} minutes` : `its process ended ${end}`
      listener.told(unit, { kind: 'failed', name: 'running the file', reason: `${reason}\n${this.#output}` })
    }
    listener.ended(unit, Date.now() - began, this.#output)
    return typeof end === 'number' && end < maxBytes
  }

  async end(): Promise<undefined> {
    if (this.#child.connected) this.#child.disconnect()
    await this.#exited
  }
}
