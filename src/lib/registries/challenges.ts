// Parser of the challenges in a `WWW-Authenticate` header (RFC 9110, 11.6.1).

/** The scheme and the names of the parameters are in lower case. */
export type Challenge = { scheme: string; parameters: Map<string, string> }

const maxHeader = 8192

/**
 * All challenges in their order, also those of several headers that were joined with commas. Parameters may be quoted or
 * not.
 */
export function readChallenges(header: string): Challenge[] {
  const challenges: Challenge[] = []
  const words = /([a-z0-9_-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+)))?/gi
  for (const [, name, quoted, plain] of header.slice(0, maxHeader).matchAll(words)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain
    // A word without a value begins a challenge.
    if (value === undefined) challenges.push({ scheme: name!.toLowerCase(), parameters: new Map() })
    else challenges.at(-1)?.parameters.set(name!.toLowerCase(), value)
  }
  return challenges
}
