// Conversion of times. The server uses ISO text with milliseconds; the API uses google.protobuf.Timestamp.

/** First and last second of a protobuf timestamp: 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
const minSeconds = -62_135_596_800n
const maxSeconds = 253_402_300_799n

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

export type Instant = { seconds: bigint; nanos: number }

/**
 * A protobuf timestamp that keeps its ISO text. REST writes the text. gRPC reads seconds and nanos, which are computed on access.
 */
export class IsoTimestamp {
  readonly $typeName = 'google.protobuf.Timestamp'
  readonly iso: string

  constructor(iso: string) {
    this.iso = iso
  }

  get seconds(): bigint {
    return BigInt(Math.floor(Date.parse(this.iso) / 1000))
  }

  get nanos(): number {
    return (((Date.parse(this.iso) % 1000) + 1000) % 1000) * 1_000_000
  }
}

/** Creates a timestamp. `iso` is not checked, so it must come from our own code, such as 2026-08-01T12:00:00.000Z. */
export function timestamp(iso: string): IsoTimestamp {
  return new IsoTimestamp(iso)
}

/**
 * Converts to ISO text with milliseconds. Never throws: a time outside of the years 0001 to 9999 becomes the nearest possible
 * time.
 */
export function toIso(ts: Instant): string {
  if (ts instanceof IsoTimestamp) return ts.iso
  if (ts.seconds < minSeconds) return '0001-01-01T00:00:00.000Z'
  if (ts.seconds > maxSeconds) return '9999-12-31T23:59:59.999Z'
  const milliseconds = Math.min(Math.max(Math.floor(ts.nanos / 1_000_000), 0), 999)
  return new Date(Number(ts.seconds) * 1000 + milliseconds).toISOString()
}

/** Parses RFC 3339 with any offset and up to nine fractional digits. Returns undefined for other text. */
export function parseTimestamp(text: string): Instant | undefined {
  const parts = rfc3339.exec(text)
  if (!parts) return undefined
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const [offsetHour, offsetMinute] = [Number(parts[9] ?? 0), Number(parts[10] ?? 0)]
  if (year < 1 || hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined

  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day) // Unlike Date.UTC, this does not change years below 100.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined

  const offset = (offsetHour * 60 + offsetMinute) * 60 * (parts[8] === '-' ? -1 : 1)
  const seconds = BigInt(date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset)
  if (seconds < minSeconds || seconds > maxSeconds) return undefined
  return { seconds, nanos: Number((parts[7] ?? '').padEnd(9, '0')) }
}
