// Parser of the challenges in a `WWW-Authenticate` header (RFC 9110, 11.6.1).

/** Challenge with its scheme and the names of its parameters in lower case. */
export type Challenge = { scheme: string; parameters: Map<string, string> }

const maxHeader = 8192

/** Reads all challenges in order. Several headers may be joined with commas. Values may be quoted or not. */
export function readChallenges(header: string): Challenge[] {
  const challenges: Challenge[] = []
  const words = /([a-z0-9_-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+)))?/gi
  for (const [, name, quoted, plain] of header.slice(0, maxHeader).matchAll(words)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain
    // A word without a value is the scheme of a new challenge.
    if (value === undefined) challenges.push({ scheme: name!.toLowerCase(), parameters: new Map() })
    else challenges.at(-1)?.parameters.set(name!.toLowerCase(), value)
  }
  return challenges
}
