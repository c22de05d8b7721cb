// Common parts of attacks: each is repeated at its own pace, and its answers are counted.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Random, randomFrom } from '../../support/random.ts'
import { answerOf } from './send.ts'

export type Kind = {
  /** Milliseconds from one to the next. */
  every: number
  /** Number of attacks under way at once, 4 by default. Further ones are skipped. */
  atOnce?: number
  /** Answers of the server, one or several: an HTTP status, a code of gRPC, or the way in which the connection ended. */
  attack(random: Random): Promise<string | number | readonly (string | number)[]>
}
export type Kinds = Record<string, Kind>
export type Counts = Map<string, Map<string, number>>

/** A failure of the server that no input may cause; 501 says that it is no proxy, and 505 that there is no such HTTP. */
export const isBroken = (answer: string): boolean =>
  /^5(?!0[15])\d\d$|^grpc (?:2|13)$/.test(answer) && !isRefusal(answer)
/** Statuses of a server that is overloaded or has no database at the moment. */
export const isRefusal = (answer: string): boolean => /^50[347]$|^grpc (?:4|14)$/.test(answer)

/** Makes all of them until `signal`, and resolves when the last has its answer or has been given up. */
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
