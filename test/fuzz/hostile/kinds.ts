// Common parts of attacks. Each attack is repeated at its own rate, and its answers are counted.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Random, randomFrom } from '../../support/random.ts'
import { answerOf } from './send.ts'

export type Kind = {
  /** Milliseconds between two attacks of this kind. */
  every: number
  /** Maximum number of attacks of this kind at the same time. Further ones are skipped. Default: 4. */
  atOnce?: number
  /** Runs one attack. Returns one or more results: an HTTP status, a gRPC code, or how the connection ended. */
  attack(random: Random): Promise<string | number | readonly (string | number)[]>
}
export type Kinds = Record<string, Kind>
export type Counts = Map<string, Map<string, number>>

/**
 * Failure of the server that no input may cause. Two statuses are no failures: 501 for proxy requests, and 505 for an unknown
 * HTTP version.
 */
export const isBroken = (answer: string): boolean =>
  /^5(?!0[15])\d\d$|^grpc (?:2|13)$/.test(answer) && !isRefusal(answer)
/** Answers of a server that is overloaded, or whose database is unavailable. */
export const isRefusal = (answer: string): boolean => /^50[347]$|^grpc (?:4|14)$/.test(answer)

/** Runs attacks of all kinds until `signal` is aborted. Resolves when the last attack has ended. */
export async function attackWith(kinds: Kinds, seed: number, counts: Counts, signal: AbortSignal): Promise<void> {
  const under = new Set<Promise<void>>()
  const pace = async (name: string, { every, atOnce = 4, attack }: Kind, random: Random) => {
    const mine = new Set<Promise<void>>()
    const count = counted(counts, name)
    while (!signal.aborted) {
      if (mine.size < atOnce) {
        const one = attack(random)
          .catch((error: unknown) => answerOf(error))
          .then((answers) => {
            for (const answer of [answers].flat()) count(String(answer))
          })
        const over = one.finally(() => void [mine.delete(over), under.delete(over)])
        mine.add(over)
        under.add(over)
      } else count('not sent')
      await sleep(every, undefined, { signal }).catch(() => {})
    }
  }
  await Promise.all(Object.entries(kinds).map(([name, kind], i) => pace(name, kind, randomFrom(seed + i))))
  await Promise.race([Promise.all(under), sleep(60_000)])
}

function counted(counts: Counts, name: string): (answer: string) => void {
  const own = counts.get(name) ?? new Map<string, number>()
  counts.set(name, own)
  return (answer) => void own.set(answer, (own.get(answer) ?? 0) + 1)
}
