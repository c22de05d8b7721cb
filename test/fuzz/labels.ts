// Fuzz target for metric labels: requests must not create series with labels that were not declared at the start.
import { createMetrics } from '../../src/metrics.ts'
import { oneOf, type Random } from '../support/random.ts'
import { mutate } from './mutate.ts'

const stats = () => ({ transactions: 0, commits: 0, retries: 0 })
const metrics = createMetrics({ stats } as unknown as Parameters<typeof createMetrics>[0], [])
const declared = { transports: ['rest', 'grpc'], methods: ['GetRepo', 'GET /healthz', 'other /healthz'] }
metrics.entryPoints.transports.declare(declared.transports)
metrics.entryPoints.methods.declare(declared.methods)
const words = [...declared.transports, ...declared.methods, 'OK', '404', 'NOT_FOUND', '__proto__', '']
const known = new Set([...declared.transports, ...declared.methods, 'none', 'other'])

export const labelTargets: Record<string, (random: Random) => unknown> = {
  async labels(random) {
    const word = () => (random.below(2) ? mutate(random, oneOf(random, words)) : oneOf(random, words))
    metrics.requests.observe({ transport: word(), method: word(), code: word() }, 0.001)
    if (random.below(50) > 0) return
    const metric = metrics.registry.getSingleMetric('pinfold_request_duration_seconds')!
    for (const { labels } of (await metric.get()).values as { labels: Record<string, string> }[]) {
      const { transport, method, code } = labels
      if (!known.has(transport!) || !known.has(method!) || !/^(?:[A-Z_]+|\d{3}|other)$/.test(code!)) {
        throw new Error(`a label is ${JSON.stringify(labels)}`)
      }
    }
  },
}
