const labels = /^[a-z0-9]+(?:[.-]+[a-z0-9]+)*$/

/**
 * Part before `.host` in `name`, in lower-case letters, digits, hyphens and dots. Returns undefined if it has other characters.
 */
export function subdomainOf(name: string, host: string): string | undefined {
  if (!name.endsWith(`.${host}`)) return undefined
  const before = name.slice(0, -host.length - 1)
  return labels.test(before) ? before : undefined
}
