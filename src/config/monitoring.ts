// Settings of events and the audit log, and of the log, metrics and traces (docs/operations/monitoring.md).

import { ConfigError, oneOf, onOff, optionalAddress, secret, setting, whole } from './basics.ts'
import { urlWithoutUser } from './values.ts'

export const eventSettings = {
  deliveryTimeoutMs: setting({
    env: 'PINFOLD_DELIVERY_TIMEOUT_MS',
    parse: whole(50, 120_000),
    default: '10000',
    doc: 'Milliseconds that a sink has to answer a delivery.',
    note: 'If a server fails, another server takes over its deliveries after twice this time.',
  }),
  deliveriesInFlight: setting({
    env: 'PINFOLD_DELIVERIES_IN_FLIGHT',
    parse: whole(1, 1000),
    default: '32',
    doc: 'Number of deliveries that can be in flight to one sink at the same time.',
  }),
  deliveryRetryMinMs: setting({
    env: 'PINFOLD_DELIVERY_RETRY_MIN_MS',
    formerly: 'PINFOLD_DELIVERY_RETRY_FIRST_MS',
    parse: whole(1, 3_600_000),
    default: '1000',
    doc: 'Milliseconds before the first retry of a failed delivery; each further failure doubles the time.',
    note: 'A random part (jitter) is subtracted.',
  }),
  deliveryRetryMaxMs: setting({
    env: 'PINFOLD_DELIVERY_RETRY_MAX_MS',
    formerly: 'PINFOLD_DELIVERY_RETRY_MOST_MS',
    parse: whole(1, 86_400_000),
    default: '3600000',
    doc: 'Longest time between two attempts of a delivery, in milliseconds.',
  }),
  deliveryGiveUpMs: setting({
    env: 'PINFOLD_DELIVERY_GIVE_UP_MS',
    parse: whole(1, 30 * 86_400_000),
    default: '259200000',
    doc: 'Age of an event, in milliseconds, from which a failed delivery is not retried.',
    note: 'The default is three days.',
  }),
  eventRetentionDays: setting({
    env: 'PINFOLD_EVENT_RETENTION_DAYS',
    parse: whole(1, 3650),
    default: '30',
    doc: 'Days that events and their deliveries are kept, so that they can be replayed.',
  }),
  registryEventsPerOrganization: setting({
    env: 'PINFOLD_REGISTRY_EVENTS_PER_ORGANIZATION',
    parse: whole(1, 10_000_000),
    default: '1000',
    doc: 'Number of events of pulls in one organization per minute, and of refused pushes.',
    note: 'Further events are dropped and counted in `pinfold_registry_dropped_total`.',
  }),
  streamsPerCaller: setting({
    env: 'PINFOLD_STREAMS_PER_CALLER',
    parse: whole(1, 10_000),
    default: '20',
    doc: 'Number of event streams that one caller can have open on each server.',
  }),
  streamIdleMs: setting({
    env: 'PINFOLD_STREAM_IDLE_MS',
    parse: whole(10, 600_000),
    default: '15000',
    doc: 'Milliseconds without an event after which an event stream sends a heartbeat.',
  }),
  auditRetentionDays: setting({
    env: 'PINFOLD_AUDIT_RETENTION_DAYS',
    formerly: 'PINFOLD_AUDIT_DAYS',
    parse: whole(0, 36_500),
    default: '0',
    doc: 'Days that entries of the audit log are kept; `0` keeps them forever.',
  }),
}

const headers = (value: string, name: string): Readonly<Record<string, string>> => {
  const given = value.split(',').filter((one) => one.trim() !== '')
  const pairs = given.map((one) =>
    /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e](?:[ \x21-\x7e]*[\x21-\x7e])?)\s*$/.exec(one),
  )
  if (pairs.every((pair) => pair !== null)) return Object.fromEntries(pairs.map(([, key, text]) => [key!, text!]))
  throw new ConfigError(`${name} must be headers as name=value, separated by commas`)
}

export const monitoringSettings = {
  logLevel: setting({
    env: 'PINFOLD_LOG_LEVEL',
    flag: '--log-level',
    parse: oneOf('debug', 'info', 'warn', 'error'),
    default: 'info',
    doc: 'Lowest level of log messages that are written: `debug`, `info`, `warn` or `error`.',
    note: 'If it is not set, the server holds its messages back until it is ready, or until the first warning.',
  }),
  metrics: setting({
    env: 'PINFOLD_METRICS',
    parse: onOff,
    default: 'on',
    doc: '`off` disables `/metrics`.',
  }),
  metricsListen: setting({
    env: 'PINFOLD_METRICS_LISTEN',
    parse: optionalAddress,
    default: '',
    defaultMeans: 'the address of the server, with a token',
    doc: 'Separate address and port for `/metrics`, which needs no token there.',
  }),
  metricsToken: setting({
    env: 'PINFOLD_METRICS_TOKEN',
    parse: secret,
    default: '',
    defaultMeans: 'none, so only the operator can read them',
    doc: 'Bearer token of 16 to 256 characters that can read `/metrics`.',
  }),
  traces: setting({
    env: 'PINFOLD_TRACES',
    parse: urlWithoutUser,
    default: '',
    defaultMeans: 'no traces',
    doc: 'URL of an OpenTelemetry collector that receives traces by OTLP over HTTP, such as `http://collector:4318/v1/traces`.',
    note: 'See [traces](operations/monitoring.md#traces).',
  }),
  tracesHeaders: setting({
    env: 'PINFOLD_TRACES_HEADERS',
    parse: headers,
    default: '',
    doc: 'Headers of requests to the collector, as `name=value`, separated by commas, such as `authorization=Bearer …`.',
  }),
  tracesPercent: setting({
    env: 'PINFOLD_TRACES_PERCENT',
    parse: whole(0, 100),
    default: '10',
    doc: 'Percentage of requests and of runs of background jobs that are traced.',
    note: 'The trace ID decides, so services with the same percentage trace the same requests.',
  }),
}
