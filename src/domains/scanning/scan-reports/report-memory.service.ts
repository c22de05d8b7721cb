// Memory limit that all answers with scan reports share. Each answer has a limit too, but many answers can be requested at once.
import type { Call } from '#app.ts'
import { AppError } from '#lib/errors.ts'
import { createMemory, type Memory } from '#lib/scheduling/memory.ts'
import { rootOf } from '#lib/uid.ts'

/** Memory for report texts of one answer, in bytes. A parsed report takes about four times as much memory as its text. */
const mostBytes = 32 * 2 ** 20
const waitMs = 10_000

export const createReportMemory = (bytes = mostBytes, ms = waitMs): Memory =>
  createMemory(bytes, {
    waitMs: ms,
    crowded: 'too many long reports are requested at once; try again',
    refusal: (why) =>
      new AppError('UNAVAILABLE', why, {
        reason: 'TOO_BUSY',
        details: [{ type: 'RetryInfo', retryDelaySeconds: 5 }],
      }),
  })

/**
 * Waits until `bytes` of report text fit into free memory, and reserves this memory until the call ends. A call must do this only
 * once, because a call that has reserved memory must not wait for more.
 */
export async function holdForCall(call: Call, bytes: number): Promise<void> {
  if (bytes === 0) return
  const { app, caller, signal } = call
  const owner = caller.uid === '' ? '' : rootOf(caller.uid)
  const held = await app.scanning.reading.reserve(bytes, signal, { owner, filled: () => undefined, take() {} })
  call.whenOver(() => held.free())
}
