// The HTTP binding of CloudEvents 1.0, in binary mode.

/** Headers for the attributes of an event. The names must be in lower case. Empty attributes are left out. */
export function binaryHeaders(attributes: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== '') headers[`Ce-${name[0]!.toUpperCase()}${name.slice(1)}`] = headerText(value)
  }
  return headers
}

/**
 * Returns a host, with or without a port, as a URI reference. A host such as `registry.example.com:5000` is one already, since it
 * reads as a scheme and a path. Hosts such as `127.0.0.1:5000` and `[::1]` get two slashes in front.
 */
export function hostReference(host: string): string {
  const isReference = /^(?:[a-z][a-z0-9+.-]*:|[^:[\]]*$)/i.test(host)
  return isReference ? host : `//${host}`
}

/** Keeps visible ASCII characters, and percent-encodes everything else in UTF-8. */
function headerText(value: string): string {
  return value.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) => {
    return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  })
}
