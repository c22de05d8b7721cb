// Inputs of the cost guard, and the costs of one that was sent.
import type { Cost } from './monitor.ts'
import type { Measured } from './process.ts'
import type { Sent } from './wire.ts'

export type Input = {
  /** Entry point, and method or endpoint, such as `rest pinfold.platform.ping.v2.PingService/Ping`. */
  target: string
  caller: string
  shape: string
  /** True if the short version always sends this input. It also sends one other input for each target, but no rare one. */
  isSpecial?: boolean
  isRare?: boolean
  /** Handler that the input is for. The guard reports an input that is refused before this handler. */
  handler?: string
  /** True if the request is within all limits, so that its work is done. The guard reports it if it fails. */
  isValid?: boolean
  /** Builds the request. Returns a function that sends it and may be called several times. */
  prepare(): () => Promise<Sent>
}

/** Input with its costs. `isHandled` is true if the handler of the input was called, or if it is for none. */
export type Finding = { input: Input; cost: Cost; sent: Sent; isHandled: boolean }

export const most = { turnMs: 100, heapBytes: 16 * 1024 * 1024, heapTimes: 20, tries: 3 }

/**
 * Sends one input up to three times. An input exceeds a limit only if it does so each time. From the second time on, garbage of
 * earlier requests is collected first.
 */
export async function judge(
  server: Measured,
  input: Input,
  tries: number = most.tries,
): Promise<Finding & { isOver: boolean }> {
  const send = input.prepare()
  let best: Cost | undefined
  let isHandled = input.handler === undefined
  for (let left = tries; ; left--) {
    const { cost, answer: sent, handled } = await server.measure(send, left < tries)
    isHandled ||= handled.includes(input.handler!)
    best = {
      turnMs: Math.min(cost.turnMs, best?.turnMs ?? Infinity),
      heapBytes: Math.min(cost.heapBytes, best?.heapBytes ?? Infinity),
    }
    const isOver = best.turnMs > most.turnMs || best.heapBytes > most.heapBytes + most.heapTimes * sent.bytes
    if (!isOver || left === 1) return { input, cost: best, sent, isOver, isHandled }
  }
}
