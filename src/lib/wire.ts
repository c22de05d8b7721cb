/** The answer of a method that returns google.protobuf.Empty. */
export const empty = { $typeName: 'google.protobuf.Empty' } as const

/** A set oneof as the one member it holds. */
export function memberOf(oneof: { case: string | undefined; value?: string | undefined }): Record<string, string> {
  return oneof.case === undefined || oneof.value === undefined ? {} : { [oneof.case]: oneof.value }
}

/** The oneof for whichever of the two members is set. */
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

/** A google.protobuf.Duration in whole milliseconds. */
export function milliseconds({ seconds, nanos }: { seconds: bigint; nanos: number }): number {
  return Number(seconds) * 1000 + Math.floor(nanos / 1_000_000)
}

/** A google.protobuf.Duration of whole milliseconds. */
export function duration(milliseconds: number) {
  const nanos = (milliseconds % 1000) * 1_000_000
  return { $typeName: 'google.protobuf.Duration' as const, seconds: BigInt(Math.trunc(milliseconds / 1000)), nanos }
}
