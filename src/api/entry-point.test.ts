import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Arrival } from '#edge/arrival.ts'
import { nobody } from '#edge/caller.ts'
import { type Api, enter } from './entry-point.ts'
import type { Endpoint } from './methods.ts'

/** Uses more thread time than all requests may use in one turn of the event loop. */
function useTurn(): void {
  for (const until = performance.now() + 11; performance.now() < until; );
}

test('expensive simultaneous requests run in several turns of the event loop', async () => {
  const events: string[] = []
  const endpoint = { method: { access: { mode: 'open' } } } as unknown as Endpoint
  const arrival = { countStranger() {}, admit() {}, known: nobody, caller: nobody } as unknown as Arrival
  const request = async (): Promise<void> => {
    await enter({} as Api, endpoint, arrival)
    events.push('expensive')
    useTurn()
  }
  // A pull of another caller, which runs in the next turn of the event loop.
  setImmediate(() => events.push('pull'))
  const requests: Promise<void>[] = []
  for (let i = 0; i < 3; i++) {
    requests.push(request())
    // Ready work continues without a pause, like two socket callbacks in a row.
    for (let step = 0; step < 10; step++) await undefined
  }
  await Promise.all(requests)
  assert.deepEqual(events, ['expensive', 'pull', 'expensive', 'expensive'])
})
