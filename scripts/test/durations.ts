// Durations of the test files when they last ran on this machine.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../run.ts'

const store = join(root, 'node_modules/.cache/pinfold/test-durations.json')

export type Durations = Record<string, number>

export function readDurations(): Durations {
  try {
    return JSON.parse(readFileSync(store, 'utf8')) as Durations
  } catch {
    return {}
  }
}

export function writeDurations(durations: Durations): void {
  mkdirSync(dirname(store), { recursive: true })
  writeFileSync(store, JSON.stringify(durations))
}

export const keyOf = (file: string, engine: string): string => `${engine} ${file}`

/** Last duration of a test file in milliseconds. For a file that has not run on this machine, an estimate from its size. */
export function expectedMs(durations: Durations, file: string, engine: string): number {
  return durations[keyOf(file, engine)] ?? 100 + statSync(join(root, file)).size * perByte(file)
}

/** Tests of commands start programs; unit tests start none. */
const perByte = (file: string): number => (file.startsWith('src/') ? 0.02 : file.startsWith('test/cli/') ? 1 : 0.3)
