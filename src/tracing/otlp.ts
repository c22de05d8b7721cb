// Sends traces by OTLP over HTTP, as JSON. Loaded only if the settings name a collector.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, type TimeInput, trace } from '@opentelemetry/api'
import { type ExportResult, ExportResultCode, parseTraceParent } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Attributes, Tracer } from './tracer.ts'

export type Collector = {
  /** The whole address, such as `http://collector:4318/v1/traces`. */
  url: string
  headers: Readonly<Record<string, string>>
  /** The share of requests that is traced, from 0 to 1. A client's word does not change it. */
  share: number
  version: string
  /** Called at most once a minute, with the number of spans lost since. */
  onLost: (spans: number, cause: unknown) => void
}

/** The most spans that wait to be sent; further spans are dropped. */
const mostWaiting = 4096
const sendMs = 5000
const warnEveryMs = 60_000

export function openTracer({ url, headers, share, version, onLost }: Collector): Tracer {
  const exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: sendMs, concurrencyLimit: 2 })
  const ratio = new TraceIdRatioBasedSampler(share)
  const processor = new BatchSpanProcessor({
    exporter: reportLost(exporter, onLost),
    maxQueueSize: mostWaiting,
    exportTimeoutMillis: sendMs,
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'pinfold', 'service.version': version }),
    sampler: new ParentBasedSampler({ root: ratio, remoteParentSampled: ratio, remoteParentNotSampled: ratio }),
    spanProcessors: [processor],
  })
  const spans = provider.getTracer('pinfold')
  const current = new AsyncLocalStorage<Context>()

  const inside = async <T>(
    parent: Context,
    about: { name: string; attributes: Attributes },
    work: () => Promise<T>,
  ): Promise<T> => {
    const span = spans.startSpan(about.name, { attributes: about.attributes }, parent)
    try {
      return await current.run(trace.setSpan(parent, span), work)
    } catch (error) {
      // The log has the error, under the same trace. The span does not have it, since an error may contain data of a client.
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  }

  return {
    isOn: true,
    begin(traceparent) {
      const remote = traceparent === undefined ? null : parseTraceParent(traceparent)
      const parent = remote ? trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true }) : ROOT_CONTEXT
      const span = spans.startSpan('request', { kind: SpanKind.SERVER }, parent)
      const context = trace.setSpan(parent, span)
      return {
        traceId: span.isRecording() ? span.spanContext().traceId : undefined,
        run: (work) => current.run(context, work),
        end(name, attributes, failed) {
          span.updateName(name).setAttributes(attributes)
          if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
    root: (name, attributes, work) => inside(ROOT_CONTEXT, { name, attributes }, work),
    part(name, attributes, work) {
      const parent = current.getStore()
      return parent ? inside(parent, { name, attributes }, work) : work()
    },
    past(name, attributes, seconds, failed) {
      const parent = current.getStore() ?? ROOT_CONTEXT
      const startTime: TimeInput = Date.now() - seconds * 1000
      const span = spans.startSpan(name, { kind: SpanKind.CLIENT, attributes, startTime }, parent)
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    },
    async close() {
      const late = new Promise((resolve) => setTimeout(resolve, sendMs).unref())
      await Promise.race([provider.shutdown().catch(() => {}), late])
    },
  }
}

/** Reports spans that the collector did not accept, from time to time. */
function reportLost(exporter: SpanExporter, onLost: Collector['onLost']): SpanExporter {
  let lost = 0
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    export(spans, done) {
      exporter.export(spans, (result: ExportResult) => {
        if (result.code !== ExportResultCode.SUCCESS) lost += spans.length
        if (lost > 0 && performance.now() - toldAt >= warnEveryMs) {
          onLost(lost, result.error)
          lost = 0
          toldAt = performance.now()
        }
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  }
}
