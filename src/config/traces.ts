// Settings of the collector that traces are sent to (docs/operations/monitoring.md).
import { ConfigError, setting, whole } from './basics.ts'

const collector = (value: string, name: string): string => {
  const url = URL.parse(value)
  if (value === '' || (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''))
    return value
  throw new ConfigError(`${name} must be an http or https URL without a user and password`)
}

const headers = (value: string, name: string): Readonly<Record<string, string>> => {
  const given = value.split(',').filter((one) => one.trim() !== '')
  const pairs = given.map((one) =>
    /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e](?:[ \x21-\x7e]*[\x21-\x7e])?)\s*$/.exec(one),
  )
  if (pairs.every((pair) => pair !== null)) return Object.fromEntries(pairs.map(([, key, text]) => [key!, text!]))
  throw new ConfigError(`${name} must be name=value, with commas`)
}

export const traceSettings = {
  traces: setting({
    env: 'PINFOLD_TRACES',
    parse: collector,
    default: '',
    doc: 'Where traces are sent by OTLP over HTTP, such as `http://collector:4318/v1/traces`. Default: nowhere. See [traces](operations/monitoring.md#traces).',
  }),
  tracesHeaders: setting({
    env: 'PINFOLD_TRACES_HEADERS',
    parse: headers,
    default: '',
    doc: 'Headers that the collector wants, as `name=value` with commas, such as `authorization=Bearer …`.',
  }),
  tracesPercent: setting({
    env: 'PINFOLD_TRACES_PERCENT',
    parse: whole(0, 100),
    default: '10',
    doc: 'How many of a hundred requests, and of runs of duties, are traced. Which ones follows from the id of the trace, so that services with the same share trace the same requests.',
  }),
}
