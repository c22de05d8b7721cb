import { Writable } from 'node:stream'
import { createLogger, type Level } from '#lib/log.ts'
import type { Json } from './pinfold.ts'

/** Logger whose lines a test can read and wait for. */
export function captureLog(level: Level = 'info') {
  const lines: Json[] = []
  const wakers = new Set<() => void>()
  const out = new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).trimEnd().split('\n')) lines.push(JSON.parse(line) as Json)
      for (const wake of wakers) wake()
      done()
    },
  })
  /** Returns the first line that `matches`. Waits if it is not logged yet. */
  const until = (matches: (line: Json) => boolean): Promise<Json> =>
    new Promise((resolve) => {
      const look = () => {
        const found = lines.find(matches)
        if (!found) return
        wakers.delete(look)
        resolve(found)
      }
      wakers.add(look)
      look()
    })
  return { log: createLogger(out, level), lines, until }
}

/** Captures the log of this process, instead of printing it. Returns all captured lines as one text. */
export function takeStderr(): () => string {
  const taken: string[] = []
  process.stderr.write = ((chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    taken.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())
    const done = rest.findLast((one) => typeof one === 'function') as (() => void) | undefined
    done?.()
    return true
  }) as typeof process.stderr.write
  return () => taken.join('')
}
