// Processor time of the turns of a measured server, and of everything that it does. A turn is one round of the event loop.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Turn } from './turn-monitor.ts'

/** Module that the server has to load first. */
export const monitorFile = join(import.meta.dirname, 'turn-monitor.ts')

/** Turns of the server since the last call. */
export async function takeTurns(server: ChildProcess): Promise<Turn[]> {
  server.send('turns')
  const [turns] = (await once(server, 'message')) as [Turn[]]
  return turns
}

/**
 * Processor time that the threads of a process have used so far, in milliseconds. Linux updates the time of a running thread only
 * at each tick of the kernel, so single differences are a few milliseconds off.
 */
export function processorMs(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  const used = tasks.map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]))
  return used.reduce((sum, one) => sum + one, 0) / 1e6
}

/** Head of a table with a row for each kind: its name, both columns of `usesOf`, and `processorMs` of the pulls. */
export const usesTitle = `Processor time in milliseconds: median, p99, longest. On a processor without other work, a pull takes about as long as
the server's processor time from its request to its answer.

| 16 at a time | main thread, for each turn | all threads, for each turn | all threads, for each pull of the other |
| --- | --- | --- | --- |`

export function usesOf(turns: readonly Turn[]): [thread: number[], process: number[]] {
  return [turns.map(({ thread }) => thread), turns.map((turn) => turn.process)]
}
