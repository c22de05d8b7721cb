// Cost guard: sends inputs, and sorts those that exceed a limit into known and new ones.
import type { Finding, Input } from './input.ts'
import { judge, most } from './input.ts'
import { known, refusedTargets } from './known.ts'
import type { Measured } from './process.ts'

export type Result = {
  sent: number
  /** Inputs that exceed a limit and are not in `known.ts`. */
  over: string[]
  /** Entries of `known.ts` whose inputs no longer exceed a limit. */
  stale: string[]
  /** Inputs that did not reach their target, such as those with the answer 429. */
  unsent: string[]
  /** Inputs that were refused before their handler, with the status and the start of the response. */
  unhandled: string[]
  /** Valid inputs that the server refused. */
  failed: string[]
  /** Targets of entry points for which every request was refused, so that no handler was measured. */
  closed: string[]
  /** Number of inputs that were not sent, because the entry point does not serve their HTTP method. */
  skipped: number
  /** Number of inputs by protocol and status of the response. */
  statuses: Map<string, number>
}

/** Name of an input in `known.ts` and in reports. */
export function titleOf({ target, caller, shape }: Input): string {
  return `${target} by ${caller}: ${shape}`
}

export function describe({ input, cost, sent }: Finding): string {
  const heap = `${(cost.heapBytes / 1024 / 1024).toFixed(1)} MiB`
  return `${titleOf(input)}: ${cost.turnMs.toFixed(0)} ms of one turn, ${heap} of heap, ${sent.bytes} bytes, status ${sent.status}`
}

/** Statuses of requests that are refused before their handler. */
const refusals = new Set(['401', '403', '404', '405', '413', '429', 'closed'])

/** Kind of an entry point, such as `scim Users`. Undefined for methods of the API. */
function kindOf(target: string): string | undefined {
  const [, transport, kind] = /^(\S+) (?:GET|HEAD|PUT|POST|PATCH|DELETE|OPTIONS|other) (.+)$/.exec(target) ?? []
  return kind && `${transport} ${kind}`
}

export async function runGuard(
  server: Measured,
  inputs: readonly Input[],
  say: (line: string) => void = () => {},
): Promise<Result> {
  const lists = { over: [], stale: [], unsent: [], unhandled: [], failed: [], closed: [] }
  const result: Result = { sent: 0, skipped: 0, statuses: new Map(), ...lists }
  const unserved = new Set<string>()
  const served = new Map<string, boolean>()
  const tried = new Map<RegExp, { sent: number; over: number }>()
  for (const input of inputs) {
    if (unserved.has(input.target)) {
      result.skipped++
      continue
    }
    const entries = known.filter((one) => one.input.test(titleOf(input)))
    const finding = await judge(server, input, entries.length > 0 ? 1 : undefined)
    result.sent++
    if (result.sent % 1000 === 0) say(`${result.sent} of ${inputs.length} inputs`)
    const { status, text } = finding.sent
    const kind = kindOf(input.target)
    if (kind) served.set(input.target, served.get(input.target) || !refusals.has(status))
    // Other requests with this HTTP method would be refused in the same way.
    if (kind && status === '405' && input.shape === 'as it is') unserved.add(input.target)
    // A handler can have a limit of its own, such as on requests for access.
    if (status === '429' && (input.handler === undefined || !finding.isHandled)) result.unsent.push(titleOf(input))
    if (!finding.isHandled) {
      result.unhandled.push(`${titleOf(input)}: status ${status}, ${text}`)
      say(`refused before its handler: ${result.unhandled.at(-1)}`)
    }
    if (input.isValid && !/^2\d\d$/.test(status)) {
      result.failed.push(`${titleOf(input)}: status ${status}, ${text}`)
      say(`failed: ${result.failed.at(-1)}`)
    }
    const answered = `${input.target.startsWith('grpc ') ? 'gRPC' : 'HTTP'} ${status}`
    result.statuses.set(answered, (result.statuses.get(answered) ?? 0) + 1)
    for (const { input: pattern } of entries) {
      const counts = tried.get(pattern) ?? { sent: 0, over: 0 }
      tried.set(pattern, { sent: counts.sent + 1, over: counts.over + (finding.isOver ? 1 : 0) })
    }
    if (!finding.isOver || entries.length > 0) continue
    result.over.push(describe(finding))
    say(describe(finding))
  }
  for (const [target, isServed] of served) {
    const hasReason = target in refusedTargets || kindOf(target)! in refusedTargets
    if (!isServed && !unserved.has(target) && !hasReason) result.closed.push(target)
  }
  for (const [pattern, { over }] of tried) if (over === 0) result.stale.push(String(pattern))
  return result
}

export const limits = `${most.turnMs} ms of CPU time in a turn, or ${most.heapBytes / 1024 / 1024} MiB of heap and ${most.heapTimes} times the bytes sent`
