// How much of reports a process holds in memory for all answers together: one answer is bounded by itself, but many may be
// asked for at once.
import type { Call } from '#app.ts'
import { AppError } from '#lib/errors.ts'
import { createMemory, type Memory } from '#lib/scheduling/memory.ts'
import { rootOf } from '#lib/uid.ts'

/** What one answer has at most. What a text is parsed to takes some four times as much. */
const mostBytes = 32 * 2 ** 20
const waitMs = 10_000

export const createReportMemory = (bytes = mostBytes, ms = waitMs): Memory =>
  createMemory(bytes, {
    waitMs: ms,
    crowded: 'too many long reports are asked for at once',
    refusal: (why) =>
      new AppError('UNAVAILABLE', why, {
        reason: 'TOO_BUSY',
        details: [{ type: 'RetryInfo', retryDelaySeconds: 5 }],
      }),
  })

/** Waits for room for so many bytes, which the call has until it is over. Once a call: who has some waits for no more. */
export async function holdForCall(call: Call, bytes: number): Promise<void> {
  if (bytes === 0) return
  const { app, caller, signal } = call
  const owner = caller.uid === '' ? '' : rootOf(caller.uid)
  const held = await app.scanning.reading.reserve(bytes, signal, { owner, filled: () => undefined, take() {} })
  call.whenOver(() => held.free())
}
