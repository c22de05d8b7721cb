import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Db } from './db/sql.ts'
import { type QueueDepth, readDepth } from './domains/events/delivery/depth.store.ts'

/** What `/metrics` shows. Labels never hold names, uids or other data of users. */
export type Metrics = {
  registry: Registry
  /** In seconds, by door (`transport`), method, and code of google.rpc or status of HTTP; `edge/` fills them in. */
  requests: Histogram<'transport' | 'method' | 'code'>
  inFlight: Gauge
  deliveryAttempts: Counter<'result'>
  /** In seconds, from the event to the first attempt. */
  deliveryLatency: Histogram
  duties: DutyMetrics
}

/** By duty, of which there is a closed list. */
export type DutyMetrics = {
  runs: Counter<'duty' | 'result'>
  /** In seconds since 1970. */
  lastSuccess: Gauge<'duty'>
  /** In seconds. */
  lastDuration: Gauge<'duty'>
  /** In a row. */
  failures: Gauge<'duty'>
  leaseHeld: Gauge<'duty'>
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
      help: 'How long requests took, by the door that they came to',
      labelNames: ['transport', 'method', 'code'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers: [registry],
    }),
    inFlight: new Gauge({
      name: 'pinfold_requests_in_flight',
      help: 'Requests that are being answered now, without those for documents such as this one',
      registers: [registry],
    }),
    ...deliveryMetrics(db, registry),
    duties: dutyMetrics(registry),
  }
}

function dutyMetrics(registry: Registry): DutyMetrics {
  const gauge = (name: string, help: string) =>
    new Gauge({ name: `pinfold_duty_${name}`, help, labelNames: ['duty'], registers: [registry] })
  return {
    runs: new Counter({
      name: 'pinfold_duty_runs_total',
      help: 'Runs of background duties, by how they ended: ok, failed, or lost, when another node took the lease over',
      labelNames: ['duty', 'result'],
      registers: [registry],
    }),
    lastSuccess: gauge('last_success_timestamp_seconds', 'When the duty last ended well on this node'),
    lastDuration: gauge('last_duration_seconds', 'How long its last run took'),
    failures: gauge('failures', 'How often in a row it has failed since'),
    leaseHeld: gauge('lease_held', 'Whether this node holds the lease of a duty that one node at a time runs'),
  }
}

function deliveryMetrics(db: Db, registry: Registry): Pick<Metrics, 'deliveryAttempts' | 'deliveryLatency'> {
  const depth = {
    waiting:
      'Deliveries that wait, by why: nothing (ready), their sink fails (blocked), or their subscription is paused',
    oldest: 'Age of the oldest of them',
  }
  const gauge = (name: string, help: string, value: (one: QueueDepth) => number): void => {
    const collect = async function (this: Gauge<'state'>): Promise<void> {
      const depths = await readDepth(db, Date.now())
      for (const [state, one] of Object.entries(depths)) this.set({ state }, value(one))
    }
    new Gauge({ name, help, labelNames: ['state'], registers: [registry], collect })
  }
  gauge('pinfold_deliveries_waiting', depth.waiting, ({ count }) => count)
  gauge('pinfold_deliveries_oldest_seconds', depth.oldest, ({ ageSeconds }) => ageSeconds)
  return {
    deliveryAttempts: new Counter({
      name: 'pinfold_delivery_attempts_total',
      help: 'Attempts to deliver an event, by how they ended',
      labelNames: ['result'],
      registers: [registry],
    }),
    deliveryLatency: new Histogram({
      name: 'pinfold_delivery_latency_seconds',
      help: 'How long after an event its delivery was tried first',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600],
      registers: [registry],
    }),
  }
}
