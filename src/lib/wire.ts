/** Response of a method that returns google.protobuf.Empty. */
export const empty = { $typeName: 'google.protobuf.Empty' } as const

/** Converts a oneof to an object with the set member. Empty if none is set. */
export function memberOf(oneof: { case: string | undefined; value?: string | undefined }): Record<string, string> {
  return oneof.case === undefined || oneof.value === undefined ? {} : { [oneof.case]: oneof.value }
}

/** Converts an object to a oneof with the set member, of two possible ones. */
export function oneofOf<K extends string>(
  from: { [key in K]?: string },
  exact: K,
  pattern: K,
): { case: K; value: string } | { case: undefined } {
  for (const name of [exact, pattern]) {
    const value = from[name]
    if (value !== undefined && value !== '') return { case: name, value }
  }
  return { case: undefined }
}

/** Milliseconds of a google.protobuf.Duration, rounded down. */
export function milliseconds({ seconds, nanos }: { seconds: bigint; nanos: number }): number {
  return Number(seconds) * 1000 + Math.floor(nanos / 1_000_000)
}

/** Creates a google.protobuf.Duration from whole milliseconds. */
export function duration(milliseconds: number) {
  const nanos = (milliseconds % 1000) * 1_000_000
  return { $typeName: 'google.protobuf.Duration' as const, seconds: BigInt(Math.trunc(milliseconds / 1000)), nanos }
}
