// Waits for the rate limits of hosts. A caller that cannot wait long enough, or that is one of too many, gets the time after
// which it may try again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { HostRateLimits, RequestSender } from './host-rate-limits.ts'

export type HostQueues = {
  /**
   * Waits at most `patienceMs` until a request to the host is allowed. Returns 0 if it is allowed, else the milliseconds after
   * which to try again.
   */
  take(host: string, asker: RequestSender, patienceMs: number): Promise<number>
}

/** Maximum number of waiting requests of one holder for one host. The host accepts this number in five seconds. */
const mostWaiting = 100
const fullMs = 5_000

/** `pause` waits for some milliseconds. Tests replace it. */
export function createHostQueues(paces: HostRateLimits, pause: (ms: number) => Promise<unknown> = sleep): HostQueues {
  const waiting = new Map<string, number>()

  const wait = async (host: string, asker: RequestSender, patienceMs: number, first: number): Promise<number> => {
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
