// Mirror whose upstream refuses, fails or hangs for six hours, while stored content is pulled all the time. No such pull may
// fail, and only few may wait. To run it by hand:
//   bin/pinfold-node test/fuzz/upstream-trouble.ts --hours 6
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one. With --check, on an idle machine, the program also fails if pulls
// without a request to the upstream are slow.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { ok } from '../support/expect.ts'
import { publishAt } from '../support/hostile-upstreams.ts'
import { startRegistry } from '../support/registry.ts'
import { answering, type Fault, localUpstreams, startUpstream } from '../support/upstream.ts'
import { inMs, quantile } from './hostile/measure.ts'

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '6' },
    tags: { type: 'string', default: '10' },
    check: { type: 'boolean', default: false },
  },
})
const minute = 60_000
const troubles: Record<string, Fault> = {
  'answers 429': answering(429),
  'answers 500': answering(500),
  'answers 503 and wants patience': answering(503, { 'retry-after': '30' }),
  hangs: () => true,
  'closes each connection': (_req, res) => {
    res.destroy()
    return true
  },
}

type Played = { took: number[]; alone: number[]; failed: number; asked: number }

/** Milliseconds of each pull, and of each pull without a request to the upstream. */
async function play(trouble: Fault): Promise<Played> {
  let shift = 0
  await using registry = await startRegistry({
    ...localUpstreams,
    clock: () => new Date(Date.now() + shift),
    monotonic: () => performance.now() + shift,
  })
  await using there = await startUpstream()
  const { operator, org, seed, registryAs, puller } = registry
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name: 'there', url: there.url }))
  const repo = (await seed.repo(org.uid, { name: 'mirror' })).uid as string
  const body = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_ON_DEMAND' }
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, body))
  const tags = Array.from({ length: Number(values.tags) }, (_, i) => `1.${i}`)
  for (const tag of tags) {
    publishAt(there, tag)
    await puller.ok(200, 'GET', `acme/mirror/manifests/${tag}`)
    shift += minute
  }
  there.breakWith(trouble)
  there.forget()
  const took: number[] = []
  const alone: number[] = []
  let failed = 0
  for (const end = shift + Number(values.hours) * 60 * minute; shift < end; ) {
    // So long that each tag wants another look.
    shift += 6 * minute
    const client = await registryAs(puller.uid)
    for (const tag of tags) {
      const before = there.asked.length
      const began = performance.now()
      const { status } = await client.call('GET', `acme/mirror/manifests/${tag}`)
      const ms = performance.now() - began
      took.push(ms)
      if (there.asked.length === before) alone.push(ms)
      if (status !== 200) failed++
    }
  }
  return { took, alone, failed, asked: there.asked.length }
}

for (const [name, trouble] of Object.entries(troubles)) {
  const { took, alone, failed, asked } = await play(trouble)
  console.log(
    `${name}: ${took.length} pulls, ${failed} failed; ${inMs(took)}; ${asked} requests to the upstream; ` +
      `the other ${alone.length}: ${inMs(alone)}`,
  )
  assert.equal(failed, 0)
  assert.ok(quantile(took, 0.99) <= 3500, 'p99 is more than 3.5 s')
  const waited = took.filter((ms) => ms > 1000).length
  assert.ok(waited <= asked, 'pulls wait although the upstream is left alone')
  if (!values.check) continue
  assert.ok(alone.length > took.length / 2, 'the upstream is not left alone')
  assert.ok(quantile(alone, 0.99) <= 50, 'p99 is more than 50 ms where the upstream is left alone')
}
