import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unlessAborted } from './unless-aborted.ts'

const reason = new Error('it takes too long')

test('returns the result of the promise, or its error', async () => {
  const { signal } = new AbortController()
  assert.equal(await unlessAborted(Promise.resolve(1), signal), 1)
  await assert.rejects(unlessAborted(Promise.reject(reason), signal), reason)
})

test('rejects with the reason of the signal as soon as it is aborted', async () => {
  const abort = new AbortController()
  const waiting = unlessAborted(new Promise(() => {}), abort.signal)
  abort.abort(reason)
  await assert.rejects(waiting, reason)
})

test('handles a rejection of the promise if the signal is aborted already', async () => {
  const work = Promise.withResolvers<void>()
  await assert.rejects(unlessAborted(work.promise, AbortSignal.abort(reason)), reason)
  // The runner fails the test if nothing handles this rejection.
  work.reject(new Error('the work was aborted'))
  await new Promise((resolve) => setImmediate(resolve))
})
