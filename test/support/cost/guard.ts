// Cost guard: sends inputs, and sorts those that exceed a limit into known and new ones.
import type { Finding, Input } from './input.ts'
import { judge, most } from './input.ts'
import { known } from './known.ts'
import type { Measured } from './process.ts'

export type Result = {
  sent: number
  /** Inputs that exceed a limit and are not in `known.ts`. */
  over: string[]
  /** Entries of `known.ts` whose inputs no longer exceed a limit. */
  stale: string[]
  /** Inputs that did not reach their target, such as those with the answer 429. */
  unsent: string[]
}

/** Name of an input in `known.ts` and in reports. */
export function titleOf({ target, caller, shape }: Input): string {
  return `${target} by ${caller}: ${shape}`
}

export function describe({ input, cost, sent }: Finding): string {
  const heap = `${(cost.heapBytes / 1024 / 1024).toFixed(1)} MiB`
  return `${titleOf(input)}: ${cost.turnMs.toFixed(0)} ms of one turn, ${heap} of heap, ${sent.bytes} bytes, status ${sent.status}`
}

export async function runGuard(
  server: Measured,
  inputs: readonly Input[],
  say: (line: string) => void = () => {},
): Promise<Result> {
  const result: Result = { sent: 0, over: [], stale: [], unsent: [] }
  const tried = new Map<RegExp, { sent: number; over: number }>()
  for (const input of inputs) {
    const entries = known.filter((one) => one.input.test(titleOf(input)))
    const finding = await judge(server, input, entries.length > 0 ? 1 : undefined)
    result.sent++
    if (finding.sent.status === '429') result.unsent.push(titleOf(input))
    for (const { input: pattern } of entries) {
      const counts = tried.get(pattern) ?? { sent: 0, over: 0 }
      tried.set(pattern, { sent: counts.sent + 1, over: counts.over + (finding.isOver ? 1 : 0) })
    }
    if (!finding.isOver || entries.length > 0) continue
    result.over.push(describe(finding))
    say(describe(finding))
  }
  for (const [pattern, { over }] of tried) if (over === 0) result.stale.push(String(pattern))
  return result
}

export const limits = `${most.turnMs} ms of CPU time in a turn, or ${most.heapBytes / 1024 / 1024} MiB of heap and ${most.heapTimes} times the bytes sent`
