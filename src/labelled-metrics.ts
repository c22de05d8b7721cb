// Metrics with labels, which have fixed sets of values.
import {
  Counter,
  Gauge,
  Histogram,
  type OpenMetricsContentType,
  type PrometheusContentType,
  Registry,
} from 'prom-client'
import type { ClosedSet } from './lib/labels/closed-set.ts'

export type Counted<L extends string> = { inc(labels: Record<L, string>, by?: number): void }
export type Shown<L extends string> = { set(labels: Record<L, string>, value: number): void; reset(): void }
export type Timed<L extends string> = { observe(labels: Record<L, string>, seconds: number): void }
/** Histogram. With `traceId`, an observation gets an exemplar with this trace. */
export type Traced<L extends string> = { observe(labels: Record<L, string>, seconds: number, traceId?: string): void }

/** Creates metrics with labels. Only this function may do so, so that each label has a fixed set of values. */
export function labelled<L extends string>(sets: Record<L, ClosedSet>) {
  const names = Object.keys(sets) as L[]
  const closed = (given: Record<L, string>): Record<L, string> => {
    const labels = {} as Record<L, string>
    for (const name of names) labels[name] = sets[name].of(given[name])
    return labels
  }
  type About = { name: string; help: string; registers: Registry[] }
  return {
    /** Counter. `collect` runs before each scrape, and is for values that are counted elsewhere. */
    counter(about: About, collect?: (counter: Counted<L>) => void): Counted<L> {
      const counted: Counted<L> = { inc: (labels, by) => metric.inc(closed(labels), by) }
      const anew = () => {
        metric.reset()
        collect?.(counted)
      }
      const metric = new Counter({ ...about, labelNames: names, ...(collect && { collect: anew }) })
      return counted
    },
    gauge(about: About, collect?: (gauge: Shown<L>) => Promise<void>): Shown<L> {
      const shown: Shown<L> = { set: (labels, value) => metric.set(closed(labels), value), reset: () => metric.reset() }
      const metric = new Gauge({ ...about, labelNames: names, ...(collect && { collect: () => collect(shown) }) })
      return shown
    },
    /** Creates a histogram, with trace exemplars if tracing is on. */
    histogram(about: About & { buckets: number[] }, isTraced = false): Traced<L> {
      // Only an OpenMetrics registry accepts a metric with exemplars first. The other registry then leaves out the exemplars.
      const registers = isTraced ? [openMetricsRegistry()] : about.registers
      const metric = new Histogram<string>({ ...about, registers, labelNames: names, enableExemplars: isTraced })
      if (isTraced) for (const registry of about.registers) registry.registerMetric(metric)
      return {
        observe(labels, seconds, traceId) {
          if (!isTraced) return metric.observe(closed(labels), seconds)
          const exemplarLabels: Record<string, string> = traceId === undefined ? {} : { trace_id: traceId }
          metric.observe({ labels: closed(labels), value: seconds, exemplarLabels })
        },
      }
    },
  }
}

/** Creates a registry for the OpenMetrics format. Each registry has one format. */
export function openMetricsRegistry(): Registry {
  const open: Registry<PrometheusContentType | OpenMetricsContentType> = new Registry()
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  return open as Registry
}
