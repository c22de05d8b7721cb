// Callers that wait for the turn of a host. A caller that cannot wait, or that is one too many, gets the time for which it should
// not ask.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Asker, HostPaces } from './host-paces.ts'

export type HostTurns = {
  /** Waits until the host may be asked. 0 then, and else in how many milliseconds to try again. */
  take(host: string, asker: Asker, patienceMs: number): Promise<number>
}

/** The most requests of one holder that wait for one host: those that the host gets in five seconds. */
const mostWaiting = 100
const fullMs = 5_000

/** `pause` waits; tests replace it. */
export function createHostTurns(paces: HostPaces, pause: (ms: number) => Promise<unknown> = sleep): HostTurns {
  const waiting = new Map<string, number>()

  const wait = async (host: string, asker: Asker, patienceMs: number, first: number): Promise<number> => {
    let waited = 0
    for (let waitMs = first; waitMs > 0; waitMs = paces.take(host, asker)) {
      if (waited + waitMs > patienceMs) return waitMs
      await pause(waitMs)
      waited += waitMs
    }
    return 0
  }

  return {
    async take(host, asker, patienceMs) {
      const waitMs = paces.take(host, asker)
      if (waitMs === 0 || waitMs > patienceMs) return waitMs
      const name = `${host} ${asker.holder}`
      const before = waiting.get(name) ?? 0
      if (before >= mostWaiting) return fullMs
      waiting.set(name, before + 1)
      try {
        return await wait(host, asker, patienceMs, waitMs)
      } finally {
        const left = waiting.get(name)! - 1
        if (left === 0) waiting.delete(name)
        else waiting.set(name, left)
      }
    },
  }
}
