/** What a distribution calls `1:22.4.1-r0` or `3.11.2-6+deb12u1`, as its makers call it: `22.4.1`, `3.11.2`. */
export function upstreamVersion(version: string): string {
  return /^(?:\d+:)?v?(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? ''
}

/** By the numbers of the upstream versions, one after the other. */
export function compareNumbers(one: string, other: string): number {
  const [a, b] = [one, other].map((version) => upstreamVersion(version).split('.').map(Number))
  for (let i = 0; i < Math.max(a!.length, b!.length); i++) {
    const difference = (a![i] ?? -1) - (b![i] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}
