// Load generators of other projects, which run on another processor, and calculations on their output.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export const serverCore = '0'
export const loadCore = '1'

function output(command: string, args: readonly string[]): string {
  const done = spawnSync('taskset', ['-c', loadCore, command, ...args], { encoding: 'utf8' })
  if (done.error || done.status !== 0) throw new Error(`${command} failed; is it installed?\n${done.stderr}`)
  return done.stdout
}

/** Requests per second over HTTP/1.1 keep-alive, measured with wrk. A script of wrk sends requests other than a single GET. */
export function wrk(url: string, token: string, seconds = 2, more: readonly string[] = []): number {
  const headers = ['-H', `authorization: Bearer ${token}`]
  const text = output('wrk', ['-t1', '-c32', `-d${seconds}s`, ...headers, ...more, url])
  if (text.includes('Non-2xx')) throw new Error(`${url} answered with errors\n${text}`)
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(text)![1])
}

/** gRPC calls per second, measured with h2load. `body` is a file with one framed message. */
export function h2load(url: string, token: string, body: string, seconds = 2): number {
  const headers = ['content-type: application/grpc', 'te: trailers', `authorization: Bearer ${token}`]
  const text = output('h2load', [
    ...['-t1', '-c8', '-m8', `-D${seconds}`, '-d', body],
    ...headers.flatMap((header) => ['-H', header]),
    url,
  ])
  const [, succeeded, failed] = /(\d+) succeeded, (\d+) failed/.exec(text)!
  if (Number(failed) > 0) throw new Error(`${url} answered with errors\n${text}`)
  return Number(succeeded) / seconds
}

/** Processor time that the threads of a process have used so far, from Linux, in hundredths of a second. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Minimum and maximum of the rounds, as text for a table. */
export function spreadOf(numbers: readonly number[], digits = 2): string {
  return [Math.min(...numbers), Math.max(...numbers)].map((one) => one.toFixed(digits)).join(' to ')
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

/** Runs every measurement once in each round, so that a slow phase of the machine affects all of them. Returns the medians. */
export async function interleave<K extends string>(
  rounds: number,
  measurements: Record<K, () => Promise<number> | number>,
): Promise<Record<K, number>> {
  const results = {} as Record<K, number[]>
  for (let round = 0; round < rounds; round++) {
    for (const [name, measure] of Object.entries(measurements) as [K, () => Promise<number> | number][]) {
      results[name] ??= []
      results[name].push(await measure())
    }
  }
  return Object.fromEntries(Object.entries(results).map(([name, list]) => [name, median(list as number[])])) as Record<
    K,
    number
  >
}
