// Traces for operators with a collector: the duration of each part of a request, or of a run of a background job. Off unless the
// settings name a collector. Without one, a trace costs a call of an empty function.

/** Attributes of a span. Names and values are ours, never text from a request. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

export type Span = {
  /** 32 hex digits, for the log; undefined where nothing is recorded. */
  readonly traceId: string | undefined
  /** Spans of `work` are parts of this one. */
  run<T>(work: () => T): T
  /** Call it once; `failed` is for failures of the server, not for refusals. */
  end(name: string, attributes: Attributes, failed: boolean): void
}

export type Tracer = {
  readonly isOn: boolean
  /** Begins the span of a request; `traceparent` is the client's header with the parent span (W3C Trace Context). */
  begin(traceparent: string | undefined): Span
  /** A span of its own, which belongs to no request. */
  root<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  /** Runs `work` in a span that is a part of the current trace; without one, records nothing. */
  part<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  /** Records a step that has just ended: as a part of the current trace, or else as a span of its own. */
  past(name: string, attributes: Attributes, seconds: number, failed: boolean): void
  /** Sends the recorded spans, for a few seconds at most. Never rejects. */
  close(): Promise<void>
}

const silent: Span = { traceId: undefined, run: (work) => work(), end: () => {} }

/** Records nothing. */
export const noTracer: Tracer = {
  isOn: false,
  begin: () => silent,
  root: (_name, _attributes, work) => work(),
  part: (_name, _attributes, work) => work(),
  past: () => {},
  close: async () => {},
}
