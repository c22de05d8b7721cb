import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Db } from './db/sql.ts'

/** What `/metrics` shows. Labels never hold names, uids or other data of users. */
export type Metrics = {
  registry: Registry
  /** In seconds, by transport (rest, grpc), method of the contract and code of google.rpc. */
  requests: Histogram<'transport' | 'method' | 'code'>
  inFlight: Gauge
}

export function createMetrics(db: Db): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const words = {
    transactions: 'Transactions asked for',
    commits: 'Commits made; several transactions may share one',
    retries: 'Transactions run again after a conflict',
  }
  for (const [name, help] of Object.entries(words)) {
    const collect = function (this: Counter): void {
      this.reset()
      this.inc(db.stats()[name as keyof typeof words])
    }
    new Counter({ name: `pinfold_db_${name}_total`, help, registers: [registry], collect })
  }
  return {
    registry,
    requests: new Histogram({
      name: 'pinfold_request_duration_seconds',
      help: 'How long requests of the management API took',
      labelNames: ['transport', 'method', 'code'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers: [registry],
    }),
    inFlight: new Gauge({
      name: 'pinfold_requests_in_flight',
      help: 'Requests of the management API that are being answered now',
      registers: [registry],
    }),
  }
}
